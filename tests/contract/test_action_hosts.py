"""What every action host promises, and who starts one: the same watchers and executors, in a child and in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.action_host.hosts import ChildActionHosts
from pulse_adapters.memory.action_host import MemoryActionHosts
from pulse_adapters.memory.clock import VirtualClock
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import (
    ActionHost,
    ActionHosts,
    CannotLoad,
    EngineCodeBroken,
    EngineFault,
    ReservedNames,
    Revision,
)
from pulse_core.ports.executor import GivenUp, Result, Safety, Unsure
from pulse_core.ports.watcher import Watcher
from tests.integration.action_host.action_host_scene import MEMORY, executor, until, watcher, wished, written
from tests.long_form import sampled

FINE = watcher("return Reading({'well': True})", "fine")
WAITS = "os.mkdir(params.path + '-begun')\nwhile not os.path.exists(params.path):\n    await asyncio.sleep(0.01)\n"
"""The body of an executor that says that it has begun, and waits until its path exists."""
LONG = "Policy(Safety.AT_MOST_ONCE, timeout=30)"
CONCLUDES = """
from pulse_core.model.event import Draft
from pulse_core.model.kinds import Paused
return Reading({'x': 1}, (Draft(Paused()),))
"""


@dataclass
class Engines:
    """Starts hosts of engines that are written down. faults: those that no caller got."""

    root: Path
    in_memory: bool
    faults: list[EngineFault] = field(default_factory=list)
    begun: list[ActionHost] = field(default_factory=list)

    async def start(self, *sources: str, taken: ReservedNames | None = None, before: str = "") -> ActionHost:
        """A host of an engine with these watchers and executors."""
        revision = written(self.root / f"engine-{len(self.begun)}", *sources, before=before)
        hosts: ActionHosts = (
            MemoryActionHosts({revision.commit: run(revision)})
            if self.in_memory
            else ChildActionHosts(VirtualClock(asyncio.get_running_loop().time), dict)
        )
        host = await hosts.start(revision, MEMORY, taken or ReservedNames(), self.faults.append)
        self.begun.append(host)
        return host


def run(revision: Revision) -> Any:
    """What a written engine lists, or None if it can't be loaded."""
    found: dict[str, Any] = {}
    try:
        for file in ("own.py", "engine.py"):
            exec((Path(revision.path) / file).read_text().replace("from own import *", ""), found)
    except Exception:  # noqa: BLE001 - as an engine may
        return None
    return found["WATCHERS"], found["EXECUTORS"]


@pytest.fixture(params=["memory", "child"])
async def engines(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engines]:
    engines = Engines(tmp_path, request.param == "memory")
    yield engines
    for host in engines.begun:
        await host.close()


def named(host: ActionHost, name: str = "queue") -> Watcher:
    return next(one for one in host.watchers if one.name == name)


async def act(host: ActionHost, **params: Any) -> Result:
    """Have `beep` act, as the daemon has it."""
    one, (effect, event) = host.executors["beep"], wished("beep", params)
    own = one.params.model_validate(params)
    one.check(own)
    return await one.execute(effect, own, event)


async def verified(host: ActionHost, **params: Any) -> Result | None:
    """Have `beep` look, as the daemon has it: only where its policy says so."""
    one, (effect, event) = host.executors["beep"], wished("beep", params)
    own = one.params.model_validate(params)
    match one.policy(own).safety:
        case Safety.IDEMPOTENT:
            return None
        case Safety.AT_MOST_ONCE:
            raise Unsure("it must not run twice")
    return await one.verify(effect, own, event)


async def test_what_an_engine_lists_is_there_by_its_names(engines: Engines) -> None:
    host = await engines.start(watcher("return Reading({'n': 7})"), FINE, executor("return Result({})"))
    assert [(one.name, one.key, one.interval) for one in host.watchers] == [
        ("queue", "queue", 60.0),
        ("fine", "fine", 60.0),
    ]
    assert [(action, one.action) for action, one in host.executors.items()] == [("beep", "beep")]
    assert ((await named(host).collect()).data, list(host.faults)) == ({"n": 7}, [])


async def test_an_engine_may_list_nothing(engines: Engines) -> None:
    host = await engines.start()
    assert (list(host.watchers), dict(host.executors), list(host.faults)) == ([], {}, [])


async def test_what_cannot_be_loaded_is_said(engines: Engines) -> None:
    with pytest.raises(CannotLoad):
        await engines.start(before="raise ValueError('no')\n")


async def test_names_that_are_taken_are_left_out_with_a_fault(engines: Engines) -> None:
    taken = ReservedNames(names=("other",), keys=("queue",), actions=("beep",))
    mine = (
        watcher("return Reading({})", "other"),
        watcher("return Reading({})"),
        executor("return Result({})"),
    )
    host = await engines.start(*mine, FINE, taken=taken)
    assert ([one.name for one in host.watchers], dict(host.executors)) == (["fine"], {})
    # Those names are the daemon's own: an engine may not even be blamed under them.
    assert [fault.whose for fault in host.faults] == ["engine", "watcher:queue", "engine"]


async def test_of_two_with_one_name_the_first_stays(engines: Engines) -> None:
    again = executor("return Result({'by': 'second'})", "again").replace('"again"', '"beep"')
    other = watcher("return Reading({'by': 'second'})", "other").replace('"other"', '"queue"')
    first = watcher("return Reading({'by': 'first'})"), executor("return Result({'by': 'first'})")
    host = await engines.start(*first, again, other)
    assert ((await named(host).collect()).data, (await act(host)).data) == ({"by": "first"}, {"by": "first"})
    assert [fault.whose for fault in host.faults] == ["watcher:queue", "executor:beep"]


@pytest.mark.parametrize(
    ("body", "words"),
    sampled(
        [
            ("raise ValueError('no')", "ValueError: no"),
            ("raise SystemExit(3)", "SystemExit: 3"),
            ("raise asyncio.CancelledError", "cancelled itself"),
            ("await asyncio.Event().wait()", "not done"),
            ("return 7", "int"),
        ],
        2,
    ),
)
async def test_code_that_is_at_fault_is_told_from_a_world_that_is(
    engines: Engines, body: str, words: str
) -> None:
    waits = 0.5 if words == "not done" else 20.0
    host = await engines.start(
        watcher(body, timeout=waits), watcher("raise PulseError('down')", "world"), FINE
    )
    with pytest.raises(EngineCodeBroken, match=words):
        await named(host).collect()
    with pytest.raises(PulseError, match="down") as caught:
        await named(host, "world").collect()
    assert not isinstance(caught.value, EngineCodeBroken)
    assert (await named(host, "fine").collect()).data == {"well": True}
    assert not engines.faults


async def test_conclusions_are_dropped_with_a_fault(engines: Engines) -> None:
    host = await engines.start(watcher(CONCLUDES))
    reading = await named(host).collect()
    assert (reading.data, reading.conclusions) == ({"x": 1}, ())
    assert [fault.whose for fault in engines.faults] == ["watcher:queue"]
    assert "1 conclusions were dropped" in engines.faults[0].message


async def test_a_nudge_comes_through(engines: Engines) -> None:
    body = "asyncio.get_running_loop().call_later(0.05, self.nudge.set)\nreturn Reading({})"
    host = await engines.start(watcher(body))
    await named(host).collect()
    async with asyncio.timeout(60):
        await named(host).nudge.wait()


async def test_calls_do_not_wait_for_each_other(engines: Engines, tmp_path: Path) -> None:
    host = await engines.start(executor(WAITS + "return Result({})", policy=LONG), FINE)
    slow = asyncio.ensure_future(act(host, path=str(tmp_path / "go")))
    await until((tmp_path / "go-begun").exists)
    await named(host, "fine").collect()
    assert not slow.done()
    slow.cancel()


async def test_an_executor_acts_with_its_own_params_and_answers(engines: Engines) -> None:
    body = "return Result({'sum': params.a + params.b, 'key': effect.key, 'event': event.id})"
    host = await engines.start(executor(body, params="a: int\nb: int = 2"))
    assert (await act(host, a=40)).data == {"sum": 42, "key": "beep", "event": "effect-id"}


async def test_what_its_check_refuses_is_not_done(engines: Engines, tmp_path: Path) -> None:
    source = executor("open(params.path, 'w')\nreturn Result({})", check="raise Refused('never')")
    host = await engines.start(source, before="from pulse_core.model.errors import Refused\n")
    with pytest.raises(PulseError, match="never"):
        await act(host, path=str(tmp_path / "done"))
    assert not (tmp_path / "done").exists()


async def test_what_an_executor_raises_is_what_the_loop_sees(engines: Engines) -> None:
    body = "raise {'a': PulseError, 'b': GivenUp, 'c': Unsure, 'd': ValueError}[params.path]('words')"
    host = await engines.start(executor(body))
    for path, kind in (("a", PulseError), ("b", GivenUp), ("c", Unsure)):
        with pytest.raises(kind, match="words"):
            await act(host, path=path)
    assert not engines.faults
    with pytest.raises(PulseError, match="ValueError: words"):
        await act(host, path="d")
    assert [fault.whose for fault in engines.faults] == ["executor:beep"]


async def test_an_action_has_the_time_that_its_params_give_it(engines: Engines) -> None:
    policy = "Policy(Safety.IDEMPOTENT, timeout=params.t)"
    source = executor("await asyncio.sleep(0.3)\nreturn Result({})", policy=policy, params="t: float = 9.0")
    host = await engines.start(source)
    assert (await act(host)).data == {}
    with pytest.raises(PulseError):
        await act(host, t=0.05)


async def test_the_class_of_an_action_decides_what_is_looked_at(engines: Engines) -> None:
    verify = "return Result({'seen': True}) if params.n else None"
    policy = "Policy(Safety(params.path), timeout=9)"
    host = await engines.start(
        executor("return Result({})", policy=policy, params="path: str\nn: int = 0", verify=verify)
    )
    assert await verified(host, path="idempotent", n=1) is None
    assert await verified(host, path="verify-first") is None
    found = await verified(host, path="verify-first", n=1)
    assert found is not None
    assert found.data == {"seen": True}
    with pytest.raises(Unsure, match="must not run twice"):
        await verified(host, path="at-most-once")


async def closed(host: ActionHost) -> None:
    """Return when it is."""
    with suppress(PulseError):
        while True:
            await named(host, "fine").collect()


async def test_a_retired_host_lets_what_is_under_way_end_and_closes(engines: Engines, tmp_path: Path) -> None:
    host = await engines.start(executor(WAITS + "return Result({'done': True})", policy=LONG), FINE)
    acting = asyncio.ensure_future(act(host, path=str(tmp_path / "go")))
    await until((tmp_path / "go-begun").exists)
    retirement = host.retire(30)
    assert not acting.done()
    (tmp_path / "go").touch()
    assert (await asyncio.wait_for(acting, 60)).data == {"done": True}
    await asyncio.wait_for(closed(host), 60)
    await asyncio.wait_for(retirement, 60)
    assert not engines.faults


@pytest.mark.parametrize(("safety", "lost"), [("AT_MOST_ONCE", Unsure), ("IDEMPOTENT", GivenUp)])
async def test_a_retired_host_breaks_off_what_takes_longer_than_it_has(
    engines: Engines, tmp_path: Path, safety: str, lost: type[Exception]
) -> None:
    source = executor(
        WAITS + "return Result({})", policy=f"Policy(Safety.{safety}, timeout=86_400, retries=3)"
    )
    host = await engines.start(source, FINE)
    acting = asyncio.ensure_future(act(host, path=str(tmp_path / "go")))
    await until((tmp_path / "go-begun").exists)
    await asyncio.wait_for(host.retire(0.2), 60)
    with pytest.raises(lost, match=r"broken off: (its host was closed|the action host was told to end)"):
        await asyncio.wait_for(acting, 60)
    await asyncio.wait_for(closed(host), 60)
    assert not engines.faults


@pytest.mark.parametrize(
    ("safety", "lost"),
    sampled([("AT_MOST_ONCE", Unsure), ("VERIFY_FIRST", Unsure), ("IDEMPOTENT", PulseError)], 2),
)
async def test_a_call_under_way_is_lost_with_its_host(
    engines: Engines, tmp_path: Path, safety: str, lost: type[Exception]
) -> None:
    source = executor(WAITS + "return Result({})", policy=f"Policy(Safety.{safety}, timeout=30, retries=3)")
    host = await engines.start(source)
    acting = asyncio.ensure_future(act(host, path=str(tmp_path / "go")))
    await until((tmp_path / "go-begun").exists)
    await host.close()
    with pytest.raises(lost, match="broken off"):
        await asyncio.wait_for(acting, 60)


async def test_a_host_that_was_closed_says_so_and_may_be_closed_again(engines: Engines) -> None:
    host = await engines.start(watcher("return Reading({})"), executor("return Result({})"))
    await host.close()
    await host.close()
    for call in (named(host).collect(), act(host)):
        with pytest.raises(PulseError, match="was closed"):
            await asyncio.wait_for(call, 60)
