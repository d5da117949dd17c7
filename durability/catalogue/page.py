"""Generates docs/controls.md and the README's table of controls from the control catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from durability.catalogue.model import CONTROLS, DISKLESS, PROVIDERS, Control

BEGIN, END = "<!-- controls: made by `make catalogue` -->\n", "<!-- end of controls -->"
"""The lines around the table in the README."""


def page() -> str:
    """The content of docs/controls.md."""
    lines = [
        "# Controls",
        "",
        "`make catalogue` generates this page from `durability/catalogue/*.yaml`. Edit those files.",
        "",
        "| control | on | severity | source |",
        "|---|---|---|---|",
        *(
            f"| [{c.id}](#{c.id}) | {', '.join(c.on)} | {_severities(c)} | {c.source}{' (planned)' if c.planned else ''} |"
            for c in CONTROLS.values()
        ),
        "",
        "A requirement that a topic's tier leaves out is not evaluated. If a fact could not be read, the outcome is UNKNOWN,",
        "which never counts as compliant. Where the provider is responsible, the outcome is NOT_APPLICABLE. Planned controls",
        "are not evaluated yet. The remediations on this page are general advice. A finding has its own remediation, advice or",
        "commands to paste, see [findings.md](findings.md).",
        "",
    ]
    for control in CONTROLS.values():
        lines += _section(control)
    lines += ["## Providers", "", *(f"- `{name}`: {words}" for name, words in PROVIDERS.items())]
    lines += [f"- `{DISKLESS}`: no provider, but topics with diskless.enable or inkless.enable on (KIP-1150)"]
    lines += ["", *_support(), ""]
    return "\n".join(lines)


def table() -> str:
    """A Markdown table: each control that is evaluated, and when it fails."""
    rows = [f"| [{c.id}](docs/controls.md#{c.id}) | {c.fails_when} |" for c in CONTROLS.values() if not c.planned]
    return "\n".join(["| control | fails when |", "|---|---|", *rows, ""])


def with_table(readme: str) -> str:
    """The README's text with `table` between BEGIN and END. ValueError if one of these lines is missing."""
    before, _, rest = readme.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the README has no {BEGIN.strip()} with {END} after it")
    return f"{before}{BEGIN}{table()}{mark}{after}"


def write(root: Path) -> list[Path]:
    """Writes both files of a source tree. Returns their paths. ValueError if a control lacks one of its files."""
    if missing := [str(path) for path in _files() if not (root / path).is_file()]:
        raise ValueError(f"controls need these files: {', '.join(missing)}")
    controls, readme = root / "docs" / "controls.md", root / "README.md"
    controls.write_text(page(), encoding="utf-8")
    readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")
    return [controls, readme]


def _files() -> list[Path]:
    """The rule and the cases of each control that is evaluated, in a source tree."""
    evaluated = [c.id for c in CONTROLS.values() if not c.planned]
    rules = [Path("spark_jobs", "controls", f"{control.replace('-', '_')}.py") for control in evaluated]
    return [*rules, *(Path("tests", "cases", f"{control}.yaml") for control in evaluated)]


def _severities(control: Control) -> str:
    by_category = [f"{severity} ({category})" for category, severity in control.severities.items()]
    others = [control.severity] if control.unchecked else []
    return ", ".join([*others, *by_category]) or control.severity


def _section(control: Control) -> list[str]:
    lines = [f"## {control.id}", "", f"**{control.title}.** {control.means}", "", control.why, ""]
    if control.planned:
        lines += ["Planned: not evaluated yet.", ""]
    lines += [
        f"- Severity: {_severities(control)}",
        f"- Source: {control.source}",
        f"- Remediation: {control.remediation}",
    ]
    if control.scalar:
        lines.append(f"- Evaluated by Spark and checked by Great Expectations: observed {control.scalar} required")
    else:
        lines.append(f"- Not cross-checked: {control.not_cross_checked}")
    if control.requires:
        lines.append(f"- Tier keys: {', '.join(f'`{r.key}` ({r.about})' for r in control.requires)}")
    for provider, reason in control.provider_duty.items():
        lines.append(f"- Not applicable on `{provider}`: {reason}")
    for provider, reason in control.provider_hides.items():
        lines.append(f"- Unknown on `{provider}`: {reason}")
    return [*lines, ""]


def _support() -> Iterator[str]:
    """A table of what each control says on each provider that restricts one."""
    controls = CONTROLS.values()
    yield "What a control says there; an empty cell: the same as on a self-managed cluster."
    yield ""
    names = (*PROVIDERS, DISKLESS)
    named = [name for name in names if any(name in c.provider_duty or name in c.provider_hides for c in controls)]
    yield f"| control | {' | '.join(f'`{name}`' for name in named)} |"
    yield "|---" * (len(named) + 1) + "|"
    for control in controls:
        cells = [_cell(control, provider) for provider in named]
        if any(cells):
            yield f"| {control.id} | {' | '.join(cells)} |"


def _cell(control: Control, provider: str) -> str:
    if provider in control.provider_duty:
        return "not applicable"
    return "unknown" if provider in control.provider_hides else ""


if __name__ == "__main__":
    for path in write(Path(__file__).resolve().parents[2]):
        print(f"wrote {path}")
