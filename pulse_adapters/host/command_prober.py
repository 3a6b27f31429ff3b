"""Runs commands that say by their exit whether something is well; each has one deadline, and leaves nothing behind."""

import asyncio

from pulse_adapters.host.marked_processes import find_bearers
from pulse_adapters.host.outputs import end_of_output
from pulse_adapters.host.process_attributes import user_of
from pulse_adapters.host.spawner import CommandTimedOut, Spawner
from pulse_adapters.workers.process_tree import end_tree
from pulse_core.model.durations import duration_text
from pulse_core.model.errors import describe_error
from pulse_core.model.moment import US_PER_SECOND
from pulse_core.model.text import one_line
from pulse_core.ports.commands import CommandAnswer, CommandRequest
from pulse_core.ports.loops import TaskSet, finish_despite_cancel

_SAID = 200
"""Characters of a command's last words that are told."""


class LocalCommandProber:
    """Implements `pulse_core.ports.CommandProber`.

    owner: whose the commands are, as a log's identity: the next daemon of that finds by it what a killed one has left.
    """

    def __init__(self, spawner: Spawner, owner: str) -> None:
        self._spawner, self._owner = spawner, owner
        self._tasks = TaskSet[CommandAnswer]()
        self._cleared: set[str] = set()

    def ask(self, command: CommandRequest) -> "asyncio.Future[CommandAnswer]":
        """Run it in a task."""
        return self._tasks.begin(self._result(command), command.whose)

    async def close(self) -> None:
        """End all commands; their results are cancelled."""
        await self._tasks.close()

    async def _result(self, command: CommandRequest) -> CommandAnswer:
        try:
            return await self._run(command)
        except Exception as error:  # noqa: BLE001 - a fault of ours says nothing about what is asked
            return CommandAnswer(None, f"it could not be asked: {describe_error(error)}")

    async def _run(self, command: CommandRequest) -> CommandAnswer:
        marker, program = f"{command.whose}@{self._owner}", command.argv[0]
        user = user_of(command.user, command.group)
        if command.whose not in self._cleared:
            for left in await find_bearers(effect=marker, user=user):
                await end_tree(left)
            self._cleared.add(command.whose)
        try:
            outcome = await self._spawner.run(
                command.argv,
                timeout=command.timeout_us / US_PER_SECOND,
                cwd=command.cwd,
                env=command.env,
                marker=marker,
                user=user,
            )
        except CommandTimedOut:
            words = f"{program!r} took longer than {duration_text(command.timeout_us)} and was ended"
            return CommandAnswer(False, words, took_ms=command.timeout_us / 1000)
        await finish_despite_cancel(self._spawner.trees.end_left(outcome.found, marker))
        took_ms = round(outcome.took * 1000, 3)
        if outcome.exit == 0:
            return CommandAnswer(True, f"{program!r} says that it is well", 0, took_ms)
        how = f"exited with {outcome.exit}" if outcome.exit > 0 else f"was ended by signal {-outcome.exit}"
        # Few words are told: the indents and underlines of a traceback are none.
        words = "\n".join(" ".join(line.split()) for line in outcome.output.splitlines())
        said = one_line(end_of_output(words, _SAID))
        return CommandAnswer(False, f"{program!r} {how}{f': {said}' if said else ''}", outcome.exit, took_ms)
