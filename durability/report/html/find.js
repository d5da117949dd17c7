"use strict";
/* Search, filters, sorting, and copy buttons. Without this script the page lists the same findings.
   Names of topics and other texts of clusters are compared and assigned as text only, and never become HTML. */
(() => {
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const fold = (text) => text.toLowerCase().replace(/\s+/g, " ");
  const number = new Intl.NumberFormat("en").format;

  const find = (form) => {
    const search = form.querySelector("input");
    const facets = all("select[data-facet]", form);
    const framework = form.querySelector("select[data-framework]"); /* missing if no finding supports one */
    const sort = form.querySelector("select[data-sort]");
    const clear = form.querySelector("button");
    const status = document.getElementById("found");
    const main = document.querySelector("#findings tbody");
    /* A row may stand for several findings. Each has a number per facet: the place of its value among the options. */
    const numbers = (text) => text.split(" ").map((key) => key.split(".").map(Number));
    const counts = form.dataset.counts ? numbers(form.dataset.counts) : null;
    const cell = (row, name) => row.querySelector(name)?.textContent.trim() ?? "";
    const rows = all("table.findings > tbody > tr").map((row, place) => ({
      row,
      place,
      home: row.parentNode,
      keys: numbers(row.dataset.facets),
      text: fold(row.textContent),
      resource: cell(row, ".name"),
      since: /^\d/.test(cell(row, ".c-since")) ? cell(row, ".c-since") : "9999",
    }));
    const place = (name) => facets.findIndex((facet) => facet.dataset.facet === name);
    const by = (name) => (a, b) => a.keys[0][place(name)] - b.keys[0][place(name)];
    const names = new Intl.Collator("en", { numeric: true });
    const orders = {
      "": () => 0,
      resource: (a, b) => names.compare(a.resource, b.resource),
      cluster: by("cluster"),
      control: by("control"),
      tier: by("tier"),
      oldest: (a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0),
      newest: (a, b) => (a.since < b.since ? 1 : a.since > b.since ? -1 : 0),
    };
    /* A framework stands for several controls, by their places. */
    const supports = (key) => !(framework?.selectedIndex > 0) || controls.has(String(key[place("control")]));
    let controls = new Set();
    const fits = (key) => supports(key) && facets.every((facet, n) => facet.selectedIndex === 0 || key[n] === facet.selectedIndex);
    const filtered = () => search.value.trim() !== "" || [...facets, framework].some((field) => field?.selectedIndex > 0);
    const findings = (count) => `${number(count)} ${count === 1 ? "finding" : "findings"}`;

    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    /* How many findings are shown of how many. Findings that have no row can't be searched for words. */
    const sentence = (shown, words) => {
      const team = facets[place("team")].selectedOptions[0];
      const where = form.dataset.where + (team.dataset.page ? ` or in ${team.dataset.page}` : "");
      const here = `${findings(shown)} on this page ${shown === 1 ? "matches" : "match"}.`;
      if (!counts) return `${here} Others may be in ${where}.`;
      const matching = sum(counts.map((key) => (fits(key) ? key[facets.length] : 0)));
      const others = matching - sum(rows.map((r) => r.keys.filter(fits).length));
      if (words) return here + (others ? ` This page leaves out ${findings(others)} that may match: see ${where}.` : "");
      return `${number(shown)} of ${findings(matching)} shown.` + (others ? ` The other ${number(others)} are in ${where}.` : "");
    };

    const apply = () => {
      controls = new Set(framework?.selectedOptions[0]?.dataset.controls?.split(" "));
      const active = filtered(), words = fold(search.value).split(" ").filter(Boolean);
      const ordered = active || sort.value ? [...rows].sort((a, b) => orders[sort.value](a, b) || a.place - b.place) : rows;
      let shown = 0;
      for (const r of ordered) {
        const matching = r.keys.filter(fits).length;
        const visible = matching > 0 && words.every((word) => r.text.includes(word));
        r.row.hidden = active && !visible;
        shown += visible ? matching : 0;
        (active ? main : r.home).append(r.row);
      }
      for (const part of all("[data-unfiltered]")) part.hidden = active;
      for (const part of all("[data-filtered]")) part.hidden = !active;
      main.closest(".table").hidden = active ? shown === 0 : rows.every((r) => r.home !== main);
      status.textContent = active ? sentence(shown, words.length > 0) : "";
      clear.hidden = !active;
    };

    /* The filter is in the address, so that a filtered view can be linked. */
    const START = "find";
    const fields = [["q", search], ...facets.map((facet) => [facet.dataset.facet, facet]), ["framework", framework], ["sort", sort]].filter(([, field]) => field);
    const write = () => {
      const stated = new URLSearchParams(fields.map(([name, field]) => [name, field.value]).filter(([, value]) => value));
      const address = stated.size ? `#${START}&${stated}` : location.hash.startsWith(`#${START}`) ? "#findings" : null;
      if (address) try { history.replaceState(null, "", address); } catch { /* too often, or not allowed in a frame */ }
    };
    const read = () => {
      const [start, ...rest] = location.hash.slice(1).split("&");
      if (start !== START) return false;
      const stated = new URLSearchParams(rest.join("&"));
      for (const [name, field] of fields) {
        field.value = stated.get(name) ?? "";
        if (field.selectedIndex === -1) field.selectedIndex = 0; /* no such value in this run */
      }
      return true;
    };
    const reset = () => {
      for (const [, field] of fields) field.value = "";
      apply();
      write();
    };
    const follow = () => {
      if (read()) {
        apply();
        document.getElementById("findings").scrollIntoView();
        return;
      }
      let name = location.hash.slice(1);
      try { name = decodeURIComponent(name); } catch { /* a lone % */ }
      if (name && !document.getElementById(name) && document.getElementById(`f-${name}`)) {
        location.replace(`#f-${name}`); /* a finding's id alone; the browser then reports the new address */
        return;
      }
      const target = document.getElementById(name);
      const row = target?.closest("tr");
      if (row?.closest("[hidden]")) {
        for (const [, field] of fields) field.value = "";
        apply();
      }
      if (row) target.scrollIntoView({ block: "center" });
    };

    let soon;
    form.addEventListener("input", () => {
      apply();
      clearTimeout(soon);
      soon = setTimeout(write, 300);
    });
    clear.addEventListener("click", () => { reset(); search.focus(); });
    addEventListener("hashchange", follow);
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
      if (event.key === "/" && !typing) {
        event.preventDefault();
        search.focus();
        search.select();
      } else if (event.key === "Escape" && event.target.tagName !== "SELECT" && filtered()) {
        event.preventDefault();
        reset();
      }
    });
    form.hidden = false;
    follow();
  };

  const addCopyButtons = () => {
    const copy = async (code) => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        return "Copied";
      } catch {
        getSelection().selectAllChildren(code); /* pages without TLS and sandboxed frames have no clipboard */
        return document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
      }
    };
    for (const box of all("pre.command, pre.fix")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.setAttribute("aria-live", "polite");
      let later;
      button.addEventListener("click", async () => {
        button.textContent = await copy(box.querySelector("code"));
        clearTimeout(later);
        later = setTimeout(() => { button.textContent = "Copy"; }, 4000);
      });
      box.prepend(button);
    }
  };

  const form = document.getElementById("find");
  if (form) find(form); /* first, because buttons aren't text to be searched */
  addCopyButtons();
})();
