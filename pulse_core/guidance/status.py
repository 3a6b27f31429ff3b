"""What the status says of guidance."""

from collections.abc import Iterator

from pulse_core.guidance.projection import GUIDANCE
from pulse_core.projections.state import Snapshot


def lines(curr: Snapshot) -> Iterator[str]:
    """How many projects are looked at, and in which an agent has to replan."""
    watched = {root: one for root, one in curr.of(GUIDANCE).projects.items() if one.is_watched}
    if watched:
        pending = [root for root, one in watched.items() if one.pending]
        words = "with changes that no agent has acknowledged"
        waits = f", {len(pending)} {words}: {', '.join(pending)}" if pending else ""
        yield f"guidance  {len(watched)} project{'s' if len(watched) > 1 else ''}{waits}"
