"""What the doctor found, a line each, and what to do about it."""

from collections.abc import Sequence

from rich.text import Text

from pulse_core.app.doctor import OK, Finding
from pulse_core.model.text import one_line

COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def lines(findings: Sequence[Finding]) -> Text:
    """All findings as text."""
    drawn = Text()
    for finding in findings:
        drawn.append(f"{finding.level:<5}", COLOURS[finding.level])
        drawn.append(f"{finding.name:<12} ", "" if finding.level == OK else "bold")
        drawn.append(one_line(finding.words) + "\n")
        if finding.remedy:
            drawn.append(f"{'':<18}→ {one_line(finding.remedy)}\n", "dim")
    drawn.rstrip()
    return drawn
