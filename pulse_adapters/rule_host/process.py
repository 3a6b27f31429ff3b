"""The daemon's side of a rule host's process: asks it in time, and kills one that does not answer."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pulse_adapters.rule_host.time_budget import LOADING
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers.framing import LARGEST_REPLY, MOST_COMMAS, Message
from pulse_adapters.workers.host_groups import HostGroup
from pulse_adapters.workers.host_process import ENGINE, HostProcess, host_environment, host_program
from pulse_adapters.workers.messages import Limits
from pulse_core.ports.engine import EngineFault

T = TypeVar("T")

LIMITS = Limits(finite=False, brackets=20_000, commas=MOST_COMMAS)
"""A rule may wish for what is no number: then it is told of that, and its host goes on."""
PLUGIN = "plugin:"
GRACE = 0.02
"""Seconds of a deadline that are kept for the child's own work."""
SLOW = 0.75
"""The part of a deadline after which the child is asked where it is."""
_LAST, _STUCK = 0.3, 5.0


class RuleChild(HostProcess):
    """A running rule host. units: of the authors' code, by mark: whose each is, and where it is defined.

    group: it joins that before it loads anybody's code.
    """

    def __init__(self, plugins: Mapping[str, str], scratch: Scratch) -> None:
        self.scratch, self.group = scratch, HostGroup()
        self.units: Sequence[EngineFault] = ()
        self._plugins = tuple(plugins)
        env = host_environment(plugins, PYTHONHASHSEED="0", TMPDIR=scratch.path)
        super().__init__(host_program("pulse_adapters.rule_host.child", env, LIMITS))

    async def ask(self, message: Message, kind: type[T], seconds: float) -> T | None:
        """The answer; None if the child is dead, as one that does not answer in time is then."""
        from pulse_adapters.rule_host.replies import COMMAS, LARGEST  # slow, and a child has begun by now

        if not self.alive:
            return None
        until = time.monotonic() + seconds
        self._limits = LIMITS._replace(size=LARGEST.get(kind, LARGEST_REPLY), commas=COMMAS.get(kind))
        _, answer = self.request({**message, "until": until - min(GRACE, seconds / 5)}, kind)
        await asyncio.wait([answer], timeout=seconds * SLOW)
        if not answer.done():
            await self._ask_late(answer, until, seconds)
        return answer.result()

    async def _ask_late(self, answer: "asyncio.Future[T | None]", until: float, seconds: float) -> None:
        """Ask the child for a stack dump, which doesn't disturb it; kill it if there is still no answer in time."""
        self.where()  # of another time
        self.ask_where()
        unit = self.mark()
        await asyncio.wait([answer], timeout=max(0.0, until - time.monotonic()))
        self.read_rest()  # the loop may have been held up for so long, with the answer in the pipe, or as much as it holds
        if not answer.done() and self._frames.has_part:
            await asyncio.wait([answer], timeout=GRACE)
        if not answer.done():
            place = self.where() if self.mark() == unit else ""
            self.blame(f"took longer than {seconds * 1000:,.0f} ms, and its host was ended", place)
            self.kill()

    def culprit(self) -> EngineFault:
        mark = self.mark()
        if 0 < mark <= len(self.units):
            return self.units[mark - 1]
        plugin = mark - 1 - LOADING
        return EngineFault(
            f"{PLUGIN}{self._plugins[plugin - 1]}" if 0 < plugin <= len(self._plugins) else ENGINE, ""
        )

    async def shut_down(self) -> None:
        """End the child, kill it after a grace period, and remove its scratch folder."""
        self.hang_up()
        if self.alive:
            await self.ended(_LAST)
        self.kill()
        await self.group.end()
        if await self.ended(_STUCK):  # else the kernel does not let it go, and we can't either
            await self.reason_of_end()  # while there is something to read it from
            self.close()
            await asyncio.to_thread(self.scratch.remove)
