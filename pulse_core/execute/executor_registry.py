"""The executors by action: Pulse's own, and those of the engine in force, which are replaced with it."""

from collections.abc import Iterator, Mapping

from pulse_core.ports import Executor


class ExecutorRegistry(Mapping[str, Executor]):
    """Executors by action; Pulse's own can't be replaced.

    is_complete: whether all executors are registered. Until then an effect without an executor waits instead of
    failing: effects for the engine's executors may be open when the daemon starts, before its action host runs.
    """

    def __init__(self, own: Mapping[str, Executor], is_complete: bool = True) -> None:
        self._own = own
        self._all: Mapping[str, Executor] = own
        self.is_complete = is_complete

    def register(self, executors: Mapping[str, Executor]) -> None:
        """Register these besides Pulse's own, instead of those that were registered before."""
        self._all, self.is_complete = {**executors, **self._own}, True

    def awaits(self, action: str) -> bool:
        """Whether an executor for this action may still be registered."""
        return not self.is_complete and action not in self._all

    def __getitem__(self, action: str) -> Executor:
        return self._all[action]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
