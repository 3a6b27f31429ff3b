"""Forged messages: what a host may say, changed at random, said to the classes that listen to real hosts.

The hosts have no process: their side of the pipes is played here. All the rest is real, up to the daemon that records
what they say, and ticks beside it. `python -m tests.campaign.forgery COUNT [SEED]` is the long form.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from pulse_adapters.action_host.hosts import ChildActionHost
from pulse_adapters.action_host.process import ActionChild, CallLost
from pulse_adapters.action_host.proxies import ChildExecutor, ChildWatcher
from pulse_adapters.action_host.replies import ActionLoadReply, Owners
from pulse_adapters.action_host.supervisor import ChildSupervisor
from pulse_adapters.memory.clock import VirtualClock
from pulse_adapters.memory.engine import MemoryHosts, MemoryRevisions
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_adapters.rule_host.process import RuleChild
from pulse_adapters.workers.framing import frame
from pulse_adapters.workers.host_process import ENGINE
from pulse_adapters.workers.worker import Program, pipe
from pulse_core.composition import SURVIVAL
from pulse_core.engine.engine_context import EngineParts
from pulse_core.engine.host_supervisor import HostSupervisor
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.engine import EngineFault, Revision
from pulse_core.ports.executor import Unsure
from pulse_core.settings.settings import Settings
from pulse_core.tick import RuleFolds
from tests.simulation.world import World

SETTINGS = {
    "daemon": {"tick_ms": 100, "min_tick_ms": 20},
    "engine": {"deadline": "50ms"},
    "budget": {"actions_per_minute": 0},
    "process": [
        {
            "name": "gateway",
            "start": ["gateway"],
            "restart": {"max": 1_000, "within": "1s", "backoff": "0s", "healthy_after": "1ms"},
        }
    ],
}
ROOM = 1024 * 1024
PATIENCE = 5.0
"""Seconds; where nothing else runs a tenth of one would do."""
EFFECTS: tuple[dict[str, Any], ...] = (
    {"action": "note", "key": "k", "rule": "mine", "params": {"n": 1}, "reason": "why", "samples": [1, 2]},
    {"action": "restart-process", "key": "again", "rule": "mine", "params": {"process": "gateway"}},
    {
        "action": "notify",
        "key": "my:n",
        "rule": "other",
        "params": {"title": "t", "text": "x", "over": False},
    },
    {
        "action": "note",
        "key": "for",
        "rule": "mine",
        "params": {"for_condition": "memory"},
        "not_after": 10**15,
    },
)
FOLDED: dict[str, Any] = {
    "effects": list(EFFECTS), "tick_ms": 1_000, "notes": ["a note"],
    "layers": [["other", "passed", [], 3], ["mine", "added", ["because"], 12]],
    "faults": [["rule:mine", "ValueError: no (rules/mine.py:3)"], ["projection:own", "it stands still"], ["engine", "?"]],
}  # fmt: skip
DESCRIBED = {
    "name": "queue",
    "key": "queue",
    "interval": 5.0,
    "timeout": 1.0,
    "nudged": True,
    "place": "own.py:3",
}
POLICY = {
    "safety": "verify-first",
    "timeout": 1.0,
    "retries": 1,
    "backoff": 1.0,
    "backoff_max": 2.0,
    "cooldown": 0.0,
}
REPLIES: Mapping[str, Mapping[str, Any]] = {
    "confine": {"landlock": 4, "seccomp": True, "rlimits": True, "user": False},
    "load": {
        "rules": ["mine", "other"], "projections": {"own": ["1-abc", ["promote"]]}, "watchers": ["queue"],
        "executors": ["beep"], "plugins": [], "defined": ["rules/mine.py:1", "rules/other.py:1", "own.py:1"],
    },
    "fold": FOLDED,
    "history": {},
    "keep": {"kept": ["1-abc", 0, '{"n": 1}']},
    "actions": {
        "watchers": [DESCRIBED], "executors": [{"action": "beep", "policy": POLICY, "place": "own.py:9"}],
        "faults": [["watcher:bad", "left out: it is bad"]],
    },
    "collect": {"data": {"waiting": 3, "deep": {"x": [1.5]}}, "wake": True, "dropped": 1},
    "policy": {"policy": POLICY},
    "execute": {"data": {"bytes": 7}},
    "verify": {"wrong": "unsure", "words": "who knows"},
    "nudged": {"names": ["queue"]},
}  # fmt: skip
"""What an honest host answers, by what it is asked."""
LOADING = ("confine", "load", "history", "actions")
"""What comes before all else, and is forged more rarely."""
DEEP: Any = 0
for _ in range(70):
    DEEP = [DEEP]
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 5, 2**31, 2**63, -(2**63) - 1, 2**70, 10**4000, 1e308, float("nan"), float("inf"), "", "\0",
    "\n", "\ud800", "\u2028", "daemon", "rule:process_watchdog", "rule:mine", "watcher:network", "engine", "../..",
    "x" * 3_000, "x" * 300_000, [], ["g"], [["g"]], {}, {"process": ["g"]}, {"g": {}}, DEEP, [0] * 3_000, ["mine"] * 2_500,
    {str(number): number for number in range(2_000)}, "restart-process", "clean-paths", "notify:network", "process_watchdog",
)  # fmt: skip
"""What nobody honest says anywhere."""


class Forger:
    """Makes replies, and forges most of them. honest: how often one of these is left as it is."""

    def __init__(self, seed: int, honest: float = 0.2) -> None:
        self.dice, self.honest = Random(seed), honest
        self.made: Counter[str] = Counter()
        self.took = 0.0

    def reply(self, verb: str, number: int) -> bytes:
        """The bytes that are said to a request."""
        began = time.thread_time()
        said = self._reply(verb, number)
        self.took += time.thread_time() - began
        return said

    def _reply(self, verb: str, number: int) -> bytes:
        message: dict[str, Any] = {"id": number, **deepcopy(dict(REPLIES[verb]))}
        self.made[verb] += 1
        for effect in message.get("effects", ()):
            effect["key"] += str(number)  # so that it is no repetition
        if self.dice.random() < (0.9 if verb in LOADING else self.honest):
            return frame(encoded(message))
        for _ in range(self.dice.choice((1, 1, 1, 2, 5))):
            if message:
                self._change(message)
        body = encoded(message)
        if self.dice.random() < 0.15:
            body = self._damaged(body)
        whole = frame(body)
        if self.dice.random() < 0.03:
            whole = self._damaged(whole) + bytes(8)
        return whole * (2 if self.dice.random() < 0.03 else 1)

    def _change(self, message: dict[str, Any]) -> None:
        """Change one place: another value, a copy of one from elsewhere, one more, or one less."""
        places = list(_places(message))
        holder, key = self.dice.choice(places)
        what = self.dice.random()
        if what < 0.6:
            holder[key] = deepcopy(self.dice.choice(HOSTILE))
        elif what < 0.75:
            other, name = self.dice.choice(places)
            holder[key] = deepcopy(other[name])
        elif what < 0.9:
            if isinstance(holder, dict):
                holder[self.dice.choice(("process", "id", "\0", "\ud800", "survival", "rule"))] = deepcopy(
                    self.dice.choice(HOSTILE)
                )
            else:
                fit = 1 + ROOM // len(json.dumps(holder[key]))
                holder += [deepcopy(holder[key])] * min(self.dice.choice((1, 30, 3_000)), fit)
        else:
            del holder[key]

    def _damaged(self, raw: bytes) -> bytes:
        found = bytearray(raw)
        for _ in range(self.dice.choice((1, 3))):
            place = self.dice.randrange(len(found) or 1)
            found[place : place + self.dice.choice((0, 1, 1, 4))] = self.dice.choice(
                (b"", b"\xff", b"[", b'"', b"9" * 5_000, b"\\ud800", self.dice.randbytes(1))
            )
        return bytes(found) or b"\0"


def encoded(message: Mapping[str, Any]) -> bytes:
    """As JSON, with all that JSON can't hold; and a little more than fits, at times."""
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(message).encode()[:ROOM]
    finally:
        sys.set_int_max_str_digits(4_300)


def _places(value: Any) -> "list[tuple[Any, Any]]":
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list) and len(value[key]) < 100:
            found += _places(value[key])
    return found


class Puppet:
    """A host's process that is none: a mixin, before the class that listens to one."""

    forger: Forger
    verbs: ClassVar[Mapping[str, str]] = {}
    """What a request without a verb asks for, by one of its fields."""

    def _begin(self: Any, program: Program, theirs: ExitStack) -> None:
        self.__dict__.update(pid=0)
        self._replies, self._saying = pipe(self._ours, self._ours)
        self._handle, self._requests = pipe(self._ours, self._ours)
        self._given(theirs)
        os.set_blocking(self._replies, False)
        os.set_blocking(self._saying, False)

    def write(self: Any, raw: bytes) -> None:
        """Answer a request at once."""
        request = json.loads(raw[4:])
        if not self._is_open or "id" not in request:
            return
        verb = request.get("do") or next(
            (verb for name, verb in self.verbs.items() if name in request), "load"
        )
        said = self.forger.reply(verb, request["id"])
        try:
            is_whole = os.write(self._saying, said) == len(said)
        except BlockingIOError:
            is_whole = False
        # Whoever says half of something ends at once: to wait for the rest would take a deadline each time.
        self._loop.call_soon(self._loop.call_soon, self._fall_silent, request["id"], is_whole)

    def _fall_silent(self: Any, number: int, is_whole: bool) -> None:
        if number in self._unanswered or not is_whole:
            self.kill()

    def _signal(self: Any, number: signal.Signals) -> None:
        if not self.dead.done():
            self._loop.remove_reader(self._handle)
            self.dead.set_result(-number)

    def hang_up(self: Any) -> None:
        """It ends when nothing more is said to it."""
        self._signal(signal.SIGTERM)

    def ask_where(self) -> None:
        """It has no stack."""

    def reap(self) -> None:
        """Nothing is left of it."""


class PuppetRuleChild(Puppet, RuleChild):
    """A rule host that is none."""

    verbs: ClassVar = {"scratch": "confine"}


class PuppetActionChild(Puppet, ActionChild):
    """An action host that is none."""

    verbs: ClassVar = {"root": "actions"}

    async def clear(self, is_orderly: bool = False) -> bool:
        """It has no tree."""
        self.close()
        return True


class PuppetHosts(ChildHosts):
    """Starts rule hosts that are none."""

    forger: Forger

    def _child(self) -> RuleChild:
        scratch: Any = SimpleNamespace(path="/nowhere", is_over=lambda: False, remove=lambda: None)
        PuppetRuleChild.forger = self.forger
        return cast(RuleChild, PuppetRuleChild({}, scratch))


class Beat:
    """How late the loop's timers are, and how much the loop computes at a stretch, however busy others are.

    What the forger itself computes, by its `took`, is not counted.
    """

    def __init__(self, forger: Forger) -> None:
        self.forger = forger
        self.late: list[float] = []
        self.busy = 0.0

    async def run(self) -> None:
        """Measure, for ever."""
        while True:
            until, computed = time.monotonic() + 0.005, time.thread_time() - self.forger.took
            await asyncio.sleep(0.005)
            self.late.append(time.monotonic() - until)
            self.busy = max(self.busy, time.thread_time() - self.forger.took - computed)


class Scene:
    """A daemon, and beside it hosts whose words are forged."""

    def __init__(self, world: World, forger: Forger) -> None:
        self.world, self.forger = world, forger
        daemon = world.daemon
        assert daemon is not None
        assert daemon.engine_controller is not None
        self.daemon, self.leaks = daemon, list[Any]()
        hosts = PuppetHosts()
        hosts.forger = forger
        controller = daemon.engine_controller
        context = replace(controller.context, register=lambda watchers, executors: None)
        self.supervisor = HostSupervisor(EngineParts(controller.parts.revisions, hosts), context)
        self.folds = RuleFolds(SURVIVAL, self.supervisor.fold, self._submit)
        self.seen: Counter[str] = Counter()
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: self.leaks.append(context))

    async def _submit(self, effects: Any) -> Any:
        return await self.daemon.executor.submit(effects, self.daemon.gate)

    async def rules(self) -> None:
        """One message of a rule host, or one that is loaded."""
        if self.supervisor.is_down:
            try:
                running = await self.supervisor.start_host(Revision("forged", "/nowhere"))
            except PulseError:
                self.seen["not loaded"] += 1
                return
            await self.supervisor.switch_to(running)
        curr = self.daemon.ticker._snapshot()
        outcome = await self.folds.whole(self.daemon.ticker.prev or curr, curr)
        self.seen["folded"] += 1
        self.seen["effects"] += len(outcome.emitted)
        if self.forger.dice.random() < 0.2:
            await self.supervisor.save_user_projections()

    async def actions(self) -> None:
        """One life of an action host."""
        PuppetActionChild.forger = self.forger
        child = PuppetActionChild({}, None)
        faults: list[EngineFault] = []

        async def again() -> ActionChild:
            raise PulseError("once is enough")

        own = Owners({"watcher:process-alive", "executor:note"}, ())
        try:
            reply = await child.ask({"root": "/nowhere"}, ActionLoadReply, ENGINE, 0.05)
            found = reply.loaded(own)
        except CallLost:
            await child.clear()
            self.seen["not loaded"] += 1
            return
        faults += found.faults
        supervisor = ChildSupervisor(child, again, faults.append)
        clock, effect = self.world.clock, Effect(action="beep", key="k", params={})
        event = Event(1, "id", 1, "boot", 1, "effect", "k", "pulse", "host", None, "{}")
        watchers = [ChildWatcher(one, supervisor, clock, dict, faults.append) for one in found.watchers]
        executors = [ChildExecutor(one, supervisor, faults.append) for one in found.executors]
        host = ChildActionHost(supervisor, (), executors)
        calls: list[Callable[[], Any]] = [one.collect for one in watchers[:2]]
        for executor in executors[:2]:
            calls += [
                partial(executor.execute, effect, {}, event),
                partial(executor.verify, effect, {}, event),
            ]
        for call in calls:
            try:
                async with asyncio.timeout(0.01):  # where no child is up, it would be waited for
                    await call()
                    self.seen["called"] += 1
            except (PulseError, Unsure, TimeoutError):
                self.seen["failed"] += 1
        await host.close()
        allowed = {ENGINE, *(one.whose for one in found.watchers), *(one.whose for one in found.executors)}
        strange = {one.whose for one in faults} - allowed
        assert all(
            whose.startswith(("watcher:", "executor:")) and whose not in own.foreign for whose in strange
        ), strange


async def forge(count: int, seed: int) -> dict[str, Any]:
    """Have so many forged messages said; what came of it. Raises AssertionError if a law is broken."""
    clock = VirtualClock(asyncio.get_running_loop().time)
    revisions = MemoryRevisions({"first": ()}, "first")
    world = World(
        Settings.model_validate(SETTINGS), clock, engine=EngineParts(revisions, MemoryHosts(revisions))
    )
    await world.start()
    forger = Forger(seed)
    scene, beat = Scene(world, forger), Beat(forger)
    beating = asyncio.create_task(beat.run(), name="beat")
    turn, began = 0, time.monotonic()
    try:
        while sum(scene.forger.made.values()) < count:
            await (scene.actions() if turn % 4 == 3 else scene.rules())
            turn += 1
            if turn % 200 == 0:
                await back_at_once(world)
            if turn % 50 == 0:
                check(scene)
        await scene.supervisor.close()
        check(scene)
        await back_at_once(world)
    finally:
        beating.cancel()
    await world.end()
    late = sorted(beat.late)
    return {
        **scene.seen, "messages": sum(scene.forger.made.values()), "seconds": round(time.monotonic() - began, 1),
        "p99_late_ms": round(late[int(0.99 * (len(late) - 1))] * 1000, 1), "worst_late_ms": round(late[-1] * 1000, 1),
        "worst_busy_ms": round(beat.busy * 1000, 1),
    }  # fmt: skip


async def back_at_once(world: World) -> None:
    """What is guarded dies, and is back before anybody would notice."""
    starts, until = len(world.host.starts), time.monotonic() + PATIENCE
    world.host.kill("gateway")
    while len(world.host.starts) == starts:
        assert time.monotonic() < until, "what is guarded was not restarted"
        await asyncio.sleep(0.01)


def check(scene: Scene) -> None:
    """The daemon lives, nothing has left the boundary, and nobody was blamed who was not loaded."""
    world = scene.world
    assert world._life is not None
    assert not world._life.done(), "the daemon has ended"
    assert not scene.leaks, scene.leaks
    for event in world.log.events:
        if event.kind == "error":
            kind = event.subject.partition(":")[0]
            assert kind in ("engine", "engines", "rule", "rules", "projection", "projections"), event
            assert event.subject != "rule:process_watchdog", event
        elif event.kind == "effect":
            data = json.loads(event.data)
            assert data.get("survival") or data["rule"] != "process_watchdog", event
    if len(world.log.events) > 20_000:
        del world.log.events[1:-10_000]


def main(count: int = 1_000_000, seed: int = 0) -> bool:
    """Forge, and say what came of it; whether all laws held: no tick is late by more than 20 ms in a hundred."""
    told = asyncio.run(forge(count, seed))
    print(f"forgery: {told}", flush=True)
    return bool(told["p99_late_ms"] <= 20)


if __name__ == "__main__":
    sys.exit(0 if main(*map(int, sys.argv[1:])) else 1)
