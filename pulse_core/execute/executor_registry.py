"""Who carries out what: Pulse's own executors, and those of the engine in force, which come and go."""

from collections.abc import Iterator, Mapping

from pulse_core.ports import Executor


class ExecutorRegistry(Mapping[str, Executor]):
    """Executors by action; Pulse's own can't be replaced.

    is_complete: whether all that will come are here. Until then an effect that nobody can carry out waits, instead of
    failing: what was wished of an engine is still open when the daemon starts, and its hands are not up yet.
    """

    def __init__(self, own: Mapping[str, Executor], is_complete: bool = True) -> None:
        self._own = own
        self._all: Mapping[str, Executor] = own
        self.is_complete = is_complete

    def register(self, executors: Mapping[str, Executor]) -> None:
        """Have these besides Pulse's own, instead of those that were enlisted before."""
        self._all, self.is_complete = {**executors, **self._own}, True

    def awaits(self, action: str) -> bool:
        """Whether somebody may yet come who carries this out."""
        return not self.is_complete and action not in self._all

    def __getitem__(self, action: str) -> Executor:
        return self._all[action]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
