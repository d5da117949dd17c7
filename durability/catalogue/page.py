"""docs/controls.md, made from the control catalogue."""

from __future__ import annotations

from pathlib import Path

from durability.catalogue.model import CONTROLS, PROVIDERS, Control


def page() -> str:
    """docs/controls.md, made from the catalogue: `python -m durability.catalogue.page` writes it."""
    lines = [
        "# Controls",
        "",
        "Made from `durability/catalogue/*.yaml` by `python -m durability.catalogue.page`; edit those.",
        "",
        "| control | on | severity | from |",
        "|---|---|---|---|",
        *(
            f"| [{c.id}](#{c.id}) | {', '.join(c.on)} | {_severities(c)} | {c.source}{' (planned)' if c.planned else ''} |"
            for c in CONTROLS.values()
        ),
        "",
        "A requirement that a topic's tier leaves out isn't judged. A fact that couldn't be read makes the outcome",
        "UNKNOWN, which never counts as compliant. Where the provider is responsible the outcome is NOT_APPLICABLE.",
        'Controls marked planned are described here and not judged yet. "Mend" is what helps in general; a finding\'s own',
        "remediation is advice or commands to paste, see [findings.md](findings.md).",
        "",
    ]
    for control in CONTROLS.values():
        lines += _section(control)
    lines += ["## Providers", "", *(f"- `{name}`: {words}" for name, words in PROVIDERS.items()), ""]
    return "\n".join(lines)


def _severities(control: Control) -> str:
    by_category = [f"{severity} ({category})" for category, severity in control.severities.items()]
    return ", ".join(by_category) or control.severity


def _section(control: Control) -> list[str]:
    lines = [f"## {control.id}", "", f"**{control.title}.** {control.means}", "", control.why, ""]
    if control.planned:
        lines += ["Planned: not judged yet.", ""]
    lines += [f"- Severity: {_severities(control)}", f"- Source: {control.source}", f"- Mend: {control.remediation}"]
    if control.scalar:
        lines.append(f"- Judged twice, by Spark and by Great Expectations: observed {control.scalar} required")
    else:
        lines.append(f"- Not cross-checked: {control.not_cross_checked}")
    for provider, reason in control.provider_duty.items():
        lines.append(f"- Not applicable on `{provider}`: {reason}")
    return [*lines, ""]


if __name__ == "__main__":
    target = Path(__file__).resolve().parents[2] / "docs" / "controls.md"
    target.write_text(page(), encoding="utf-8")
    print(f"wrote {target}")
