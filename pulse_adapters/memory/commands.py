"""Commands in memory, which end as a test says."""

import asyncio
from dataclasses import dataclass, field

from pulse_core.ports.commands import CommandAnswer, CommandRequest


@dataclass
class MemoryCommands:
    """Implements `pulse_core.ports.CommandProber`. Every program exits with 0 unless `says` has another result for it.

    hanging: programs that run until their timeout; asked: every command so far.
    """

    says: dict[str, CommandAnswer] = field(default_factory=dict)
    hanging: set[str] = field(default_factory=set)
    asked: list[CommandRequest] = field(default_factory=list)

    def ask(self, command: CommandRequest) -> asyncio.Future[CommandAnswer]:
        self.asked.append(command)
        program = command.argv[0]
        result = self.says.get(program, CommandAnswer(True, f"{program!r} says that it is well", 0, 5.0))
        if program in self.hanging:
            took_ms = command.timeout_us / 1000
            result = CommandAnswer(False, f"{program!r} took longer and was ended", None, took_ms)
        return asyncio.ensure_future(asyncio.sleep(result.took_ms / 1000, result))
