"""Safe mode: a daemon that crashed again and again within a minute of its start is started with less and less.

From the log alone: `Control.crashes` counts such starts. Pure.
"""

from collections.abc import Sequence

CRASHES = 3
"""So many in a row, and the next start leaves something out; each one more, and it leaves out one more."""


def left_out(crashes: int, parts: Sequence[str]) -> tuple[str, ...]:
    """What a start after so many crashes leaves out of these parts, in their order."""
    return tuple(parts[: max(0, crashes - CRASHES + 1)])
