"""What the status says of tasks."""

from collections import Counter
from collections.abc import Iterator

from pulse_core.projections.state import Snapshot
from pulse_core.tasks.projection import TASKS


def lines(curr: Snapshot) -> Iterator[str]:
    """How many are open, by their status, if there are any."""
    if tasks := curr.of(TASKS).tasks:
        by_status = Counter(str(task.standing) for task in tasks.values())
        yield f"tasks     {len(tasks)} open: {', '.join(f'{n} {status}' for status, n in by_status.most_common())}"
