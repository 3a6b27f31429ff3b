"""Who goes on though the settings don't name it any more, for people."""

from collections.abc import Iterator, Mapping


def unguarded_lines(left: Mapping[str, int]) -> Iterator[str]:
    """A sentence for each name that is not in the settings any more, with its process and how that is ended."""
    for name, pid in left.items():
        yield f"{name} is not guarded any more; process {pid} goes on, and is ended by: kill {pid}"
