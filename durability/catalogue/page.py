"""docs/controls.md and the README's table of controls, generated from the catalogue by `python -m durability.catalogue.page`."""

from __future__ import annotations

from pathlib import Path

from durability.catalogue.model import CONTROLS, PROVIDERS, Control

BEGIN, END = "<!-- controls: made by `make catalogue` -->\n", "<!-- end of controls -->"
"""Around the table in the README."""


def page() -> str:
    """The text of docs/controls.md."""
    lines = [
        "# Controls",
        "",
        "Made from `durability/catalogue/*.yaml` by `make catalogue`; edit those.",
        "",
        "| control | on | severity | from |",
        "|---|---|---|---|",
        *(
            f"| [{c.id}](#{c.id}) | {', '.join(c.on)} | {_severities(c)} | {c.source}{' (planned)' if c.planned else ''} |"
            for c in CONTROLS.values()
        ),
        "",
        "A requirement that a topic's tier leaves out isn't evaluated. A fact that could not be read makes the outcome",
        "UNKNOWN, which never counts as compliant. Where the provider is responsible the outcome is NOT_APPLICABLE.",
        'Controls marked planned are not evaluated yet. "Fix" is what helps in general; a finding\'s own remediation is',
        "advice or commands to paste, see [findings.md](findings.md).",
        "",
    ]
    for control in CONTROLS.values():
        lines += _section(control)
    lines += ["## Providers", "", *(f"- `{name}`: {words}" for name, words in PROVIDERS.items()), ""]
    return "\n".join(lines)


def table() -> str:
    """The controls and when each fails, as a table in Markdown."""
    judged = (c for c in CONTROLS.values() if not c.planned)
    rows = [f"| [{c.id}](docs/controls.md#{c.id}) | {c.fails_when} |" for c in judged]
    return "\n".join(["| control | fails when |", "|---|---|", *rows, ""])


def with_table(readme: str) -> str:
    """The README's text with `table` between its marks. ValueError if a mark is missing."""
    before, _, rest = readme.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the README has no {BEGIN.strip()} with {END} after it")
    return f"{before}{BEGIN}{table()}{mark}{after}"


def write(root: Path) -> list[Path]:
    """Write both pages of a source tree; returns their paths."""
    controls, readme = root / "docs" / "controls.md", root / "README.md"
    controls.write_text(page(), encoding="utf-8")
    readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")
    return [controls, readme]


def _severities(control: Control) -> str:
    by_category = [f"{severity} ({category})" for category, severity in control.severities.items()]
    return ", ".join(by_category) or control.severity


def _section(control: Control) -> list[str]:
    lines = [f"## {control.id}", "", f"**{control.title}.** {control.means}", "", control.why, ""]
    if control.planned:
        lines += ["Planned: not evaluated yet.", ""]
    lines += [f"- Severity: {_severities(control)}", f"- Source: {control.source}", f"- Fix: {control.remediation}"]
    if control.scalar:
        lines.append(f"- Evaluated by Spark and by Great Expectations: observed {control.scalar} required")
    else:
        lines.append(f"- Not cross-checked: {control.not_cross_checked}")
    if control.requires:
        lines.append(f"- Required by a tier's {', '.join(f'`{r.key}` ({r.about})' for r in control.requires)}")
    for provider, reason in control.provider_duty.items():
        lines.append(f"- Not applicable on `{provider}`: {reason}")
    return [*lines, ""]


if __name__ == "__main__":
    for path in write(Path(__file__).resolve().parents[2]):
        print(f"wrote {path}")
