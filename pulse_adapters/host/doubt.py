"""What to say where it cannot be told who a process is: a search that takes too long proves nothing."""

from collections.abc import Callable

from pulse_adapters.host.search import Hits
from pulse_core.ports import ProcessObservation


class Doubts:
    """The names whose last search ended in doubt, and the pattern that was told to `failed`, until it is clear again."""

    def __init__(self, failed: Callable[[str, str], None]) -> None:
        self._failed = failed
        self._patterns: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._patterns

    def sight_of(
        self, name: str, pattern: str, hits: Hits, believed: ProcessObservation
    ) -> ProcessObservation:
        """What follows from a search: that nobody was found counts only if there was no doubt of anybody."""
        if hits.found or not hits.unsure:
            self._patterns.pop(name, None)
            return believed._replace(found=hits.found, detail=_matching(hits))
        told = self._patterns.setdefault(name, "")
        if hits.hopeless and told != pattern:
            self._patterns[name] = pattern
            self._failed(f"process:{name}", _too_hard(name, pattern, hits.hopeless[0].pid))
        why = "takes too long" if hits.hopeless else "is not over"
        pids = ", ".join(str(one.pid) for one in (hits.hopeless or hits.unsure)[:5])
        words = f"nobody knows whether process {pids} matches: the search in its command line {why}"
        return believed._replace(busy=True, detail=words)


def _matching(hits: Hits) -> str:
    if not hits.found:
        return "no process matches"
    return f"process {hits.found[0].pid} matches, of {len(hits.found)}"


def _too_hard(name: str, pattern: str, pid: int) -> str:
    return (
        f"searching the command line of process {pid} for match = {pattern!r} takes too long, so nobody knows whether"
        f" it is {name}, which is not started while that is so; write the pattern without a repetition inside of another"
    )
