"""A rule host's process: what it prints is taken as it comes, and nobody waits for it."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from pulse_adapters.child.process import Action, Process, Said, argv, pipe
from pulse_adapters.rule_host.child_output import ChildOutput

ARGV = argv("pulse_adapters.rule_host.child")


class RuleProcess(Process):
    """A running child. output: what it prints."""

    def __init__(self, env: Mapping[str, str], said: Said, gone: Callable[[], None]) -> None:
        super().__init__(ARGV, env, said, gone)
        self.output = ChildOutput(self._printed)

    def _standard(self, theirs: ExitStack) -> Sequence[Action]:
        self._printed, printed = pipe(self._ours, theirs)
        os.set_blocking(printed, False)
        return [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, printed, 1),
            (os.POSIX_SPAWN_DUP2, printed, 2),
        ]

    def unit(self) -> int | None:
        """The place of the unit under way, if any; the child may have written anything there."""
        mark = self.mark()
        return mark - 1 if mark else None

    def close(self) -> None:
        """Let go of everything; it must be dead."""
        self.output.close()
        super().close()
