"""An engine's watchers and executors work in their child as if they were the daemon's own."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.action_host import proxies
from pulse_adapters.workers.run_as import RunAs
from pulse_core.model.errors import PulseError
from pulse_core.ports.engine import CannotLoad, EngineCodeBroken, ReservedNames, Revision
from pulse_core.ports.executor import GivenUp
from tests.engine_user import lend, open_folder
from tests.integration.action_host.action_host_scene import (
    MEMORY,
    Scene,
    at_work,
    executor,
    is_running,
    until,
    watcher,
    written,
)
from tests.long_form import sampled


async def test_a_watcher_brings_samples_and_says_when_one_is_worth_a_tick(tmp_path: Path) -> None:
    source = watcher(
        "self.n = getattr(self, 'n', 0) + 1\nreturn Reading({'n': self.n})",
        wake="return window.values('n') == (1, 2)",
    )
    async with at_work(written(tmp_path, source)) as scene:
        one = scene.hands.watchers[0]
        assert (one.name, one.key, one.interval) == ("queue", "queue", 60.0)
        woke = []
        for n in (1, 2, 3):
            assert await scene.look() == {"n": n}
            woke.append(one.should_wake(scene.windows["queue"]))
        assert woke == [False, True, False]


async def test_what_the_engine_leaves_as_garbage_is_searched_for(tmp_path: Path) -> None:
    source = watcher(
        "import gc\nreturn Reading({'on': gc.isenabled(), 'kept': gc.get_freeze_count() > 1_000})"
    )
    async with at_work(written(tmp_path, source)) as scene:
        assert await scene.look() == {"on": True, "kept": True}


async def test_a_new_host_knows_the_windows_of_before(tmp_path: Path) -> None:
    source = watcher("return Reading({'n': os.getpid()})", wake="return len(window.samples) == 3")
    async with at_work(written(tmp_path, source)) as scene:
        await scene.look()
        await scene.look()
        os.kill(scene.pid, 9)
        await until(lambda: scene.supervisor.restarts.count == 1 and scene.supervisor.alive)
        await scene.look()
        assert scene.hands.watchers[0].should_wake(scene.windows["queue"])
        assert len({sample.data["n"] for sample in scene.windows["queue"].samples}) == 2


@pytest.mark.parametrize("fault", ["raise PulseError('no')", "raise ValueError", "await asyncio.sleep(9)"])
async def test_a_look_that_fails_costs_the_next_one_no_sample_of_before(tmp_path: Path, fault: str) -> None:
    body = (
        f"self.n = getattr(self, 'n', 0) + 1\nif self.n == 2:\n    {fault}\nreturn Reading({{'n': self.n}})"
    )
    source = watcher(body, timeout=0.5, wake="return window.values('n') == (1, 3)")
    async with at_work(written(tmp_path, source)) as scene:
        assert await scene.look() == {"n": 1}
        with pytest.raises((PulseError, EngineCodeBroken)):
            await scene.look()
        assert await scene.look() == {"n": 3}
        assert scene.hands.watchers[0].should_wake(scene.windows["queue"])


async def test_a_look_that_is_called_off_before_it_begins_costs_no_sample_either(tmp_path: Path) -> None:
    blocks = watcher("time.sleep(0.3)\nreturn Reading({})", name="slow")
    source = watcher("return Reading({'n': 0})", wake="return len(window.samples) == 2")
    async with at_work(written(tmp_path, source, blocks)) as scene:
        await scene.look()
        blocking = asyncio.create_task(scene.look("slow"))
        await until(lambda: scene.child.mark() != 0)
        called_off = asyncio.create_task(scene.look())
        await asyncio.sleep(0)
        called_off.cancel()
        await asyncio.wait([called_off, blocking])
        await scene.look()
        assert scene.hands.watchers[0].should_wake(scene.windows["queue"])


async def test_params_that_its_model_does_not_take_are_given_up_before_anything_is_done(
    tmp_path: Path,
) -> None:
    params = "model_config = {'extra': 'forbid'}\na: int\nb: list[str] = []"
    source = executor("open(os.environ['TMPDIR'] + '/done', 'w')\nreturn Result({})", params=params)
    async with at_work(written(tmp_path, source)) as scene:
        for wrong, words in (
            ({}, "a: Field required"),
            ({"a": []}, "a: Input should be a valid integer"),
            ({"a": 1, "c": 2}, "c: Extra inputs are not permitted"),
            ({"a": 1, "b": [1]}, r"b\.0: Input should be a valid string"),
        ):
            with pytest.raises(GivenUp, match=words):
                await scene.act(**wrong)


BY_PATH = "Policy(Safety.IDEMPOTENT if params.path else Safety.AT_MOST_ONCE, timeout=params.t, retries=2)"
PARAMS = "path: str = ''\nt: float = 20.0"


async def test_an_action_is_tried_again_as_often_as_its_params_allow(tmp_path: Path) -> None:
    source = executor("raise PulseError('no')", policy=BY_PATH, params=PARAMS)
    async with at_work(written(tmp_path, source)) as scene:
        raised = [await failure(scene, path="x") for _ in range(3)]
        assert raised == [PulseError, PulseError, GivenUp]
        assert await failure(scene) is GivenUp


async def failure(scene: Scene, **params: Any) -> type[BaseException]:
    """How an act failed."""
    with pytest.raises(PulseError) as caught:
        await scene.act(**params)
    return caught.type


@pytest.mark.parametrize(
    ("policy", "words"),
    sampled(
        [
            ("1 / (params.path == '')", "ZeroDivisionError: division by zero (own.py:"),
            ("7 if params.path else Policy(Safety.IDEMPOTENT)", "its policy is int; return Policy(...)"),
            (
                "Policy(Safety.IDEMPOTENT, timeout=-1 if params.path else 1)",
                "its policy makes no sense: timeout: ",
            ),
            ("time.sleep(60) if params.path else Policy(Safety.IDEMPOTENT)", "did not end within 1 s"),
        ],
        3,
    ),
)
async def test_who_cannot_say_its_policy_has_the_most_careful_one(
    policy: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxies, "ASKING", 1.0)
    if policy.startswith("1 /"):
        policy = f"({policy}) and Policy(Safety.IDEMPOTENT, retries=2)"
    body = "open(params.path, 'a').write('x')\nraise PulseError('no')"
    async with at_work(written(tmp_path / "engine", executor(body, policy=policy))) as scene:
        assert await failure(scene, path=str(tmp_path / "out")) is GivenUp
        assert (tmp_path / "out").read_text() == "x"
        assert [fault.whose for fault in scene.faults] == ["executor:beep"]
        assert words in scene.faults[0].message


async def test_one_that_hung_over_its_policy_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxies, "ASKING", 1.0)
    policy = "time.sleep(60) if params.path else Policy(Safety.IDEMPOTENT)"
    async with at_work(written(tmp_path, executor("return Result({})", policy=policy))) as scene:
        await scene.act(path="x")
        await scene.act(path="x")
        assert scene.supervisor.restarts.count == 1


async def test_params_that_only_the_author_can_judge_fail_before_anything_is_done(tmp_path: Path) -> None:
    params = (
        "n: int = 0\n@field_validator('n')\ndef even(cls, n):\n    assert n % 2 == 0, 'odd'\n    return n"
    )
    source = executor("open(os.environ['TMPDIR'] + '/done', 'w')\nreturn Result({})", params=params)
    before = "from pydantic import field_validator\n"
    async with at_work(written(tmp_path, source, before=before)) as scene:
        with pytest.raises(GivenUp, match=r"params of beep: n: .*odd"):
            await scene.act(n=1)
        assert not scene.faults


async def test_what_the_daemon_has_is_not_taken_over(tmp_path: Path) -> None:
    sources = (
        watcher("return Reading({})"),
        watcher("return Reading({})", "fine"),
        executor("return Result({})", "notify"),
    )
    taken = ReservedNames(names=("process-alive",), keys=("queue",), actions=("notify",))
    async with at_work(written(tmp_path, *sources), taken) as scene:
        assert [one.name for one in scene.hands.watchers] == ["fine"]
        assert not scene.hands.executors
        told = dict(scene.hands.faults)
        assert (
            "another watcher has the key 'queue'; take another one, as 'my-queue' (own.py:"
            in told["watcher:queue"]
        )
        assert "another executor has the action 'notify'" in told["engine"]


async def test_what_is_unfit_is_left_out_with_its_reason(tmp_path: Path) -> None:
    written(tmp_path, watcher("return Reading({})"), watcher("return Reading({})", "never", interval=-1))
    (tmp_path / "engine.py").write_text(
        "from own import *\nWATCHERS = [Queue(), Never(), Queue, 7]\nEXECUTORS = [Queue()]\n"
    )
    async with at_work(written_already(tmp_path)) as scene:
        assert [one.name for one in scene.hands.watchers] == ["queue"]
        words = "\n".join(f"{fault.whose} {fault.message}" for fault in scene.hands.faults)
        for expected in (
            "list one of it: Queue()",
            "its interval: ",
            "watcher:int",
            "executor:queue left out",
        ):
            assert expected in words


def written_already(root: Path) -> Revision:
    return Revision("0" * 40, str(root))


async def test_an_engine_without_hands_has_no_child(tmp_path: Path) -> None:
    async with at_work(written(tmp_path)) as scene:
        assert (scene.hands.watchers, scene.hands.executors, scene.hands.supervisor) == ((), {}, None)


@pytest.mark.wall_clock
@pytest.mark.parametrize(
    ("source", "words"),
    sampled(
        [
            ("raise ValueError('no')  # here", "ValueError: no (own.py:"),
            ("raise SystemExit(3)", "SystemExit: 3 (own.py:"),
            ("os._exit(3)", "ended with status 3"),
            ("time.sleep(60)  # here", "not loaded within 4 s (own.py:"),
            ("def f(:", "SyntaxError"),
        ],
        3,
    ),
)
async def test_an_engine_that_cannot_be_loaded_is_refused_with_its_place(
    source: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(CannotLoad) as caught:
        async with at_work(written(tmp_path, before=source + "\n"), load=4.0 if "sleep" in source else 30.0):
            pass
    assert words in str(caught.value)


async def test_nothing_is_left_of_a_host(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    body = "subprocess.Popen(['sleep', '100'])\nreturn Reading({'pid': os.getpid()})"
    async with at_work(written(tmp_path, watcher(body))) as scene:
        pid = (await scene.look())["pid"]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert children
    assert not is_running(pid)
    assert not any(is_running(int(child)) for child in children)
    assert set(os.listdir("/proc/self/fd")) <= before, "what an earlier test held may be closed meanwhile"


async def test_what_made_a_session_of_its_own_outlives_an_orderly_end(tmp_path: Path) -> None:
    body = "return Reading({'pid': subprocess.Popen(['sleep', '100'], start_new_session=True).pid})"
    async with at_work(written(tmp_path, watcher(body))) as scene:
        pid = (await scene.look())["pid"]
    assert is_running(pid)
    os.kill(pid, 9)


async def test_retired_hands_let_what_is_under_way_end(tmp_path: Path) -> None:
    async with at_work(
        written(tmp_path, executor("await asyncio.sleep(0.3)\nreturn Result({'done': True})"))
    ) as scene:
        pid, act = scene.pid, asyncio.ensure_future(scene.act())
        await until(lambda: under_way(scene))
        scene.hands.retire(30)
        assert (await act).data == {"done": True}
        await until(lambda: not is_running(pid))
        assert not scene.faults


async def test_hands_that_retire_while_a_policy_is_asked_for_still_do_the_deed(tmp_path: Path) -> None:
    policy = "time.sleep(0.2 if params.path else 0) or Policy(Safety.AT_MOST_ONCE, timeout=20)"
    source = executor("return Result({'done': True})", policy=policy)
    async with at_work(written(tmp_path, source)) as scene:
        act = asyncio.ensure_future(scene.act(path="x"))
        await until(lambda: under_way(scene))
        scene.hands.retire(30)
        assert (await act).data == {"done": True}


def under_way(scene: Scene) -> bool:
    return bool(scene.supervisor._held)


async def test_the_child_has_little_of_the_daemons_surroundings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_SECRET", "hush")
    handle = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(handle, True)
    body = """
    import resource
    names = ('RLIMIT_CORE', 'RLIMIT_NOFILE', 'RLIMIT_DATA')
    files = [f'/proc/self/fd/{n}' for n in os.listdir('/proc/self/fd')]
    return Reading({
        'env': sorted(os.environ),
        'theirs': subprocess.run(['env'], capture_output=True, text=True).stdout.split(),
        'files': [os.readlink(file) for file in files if os.path.exists(file)],
        'sid': os.getsid(0),
        'pid': os.getpid(),
        'limit': {name: resource.getrlimit(getattr(resource, name))[0] for name in names},
    })
    """
    try:
        async with at_work(written(tmp_path, watcher(body))) as scene:
            told = await scene.look()
    finally:
        os.close(handle)
    of_python = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}  # it imports Pulse, too
    assert set(told["env"]) <= {"PATH", "LANG", "HOME", "TMPDIR", "LC_CTYPE", "PULSE_HANDS", *of_python}
    assert not any("PULSE_SECRET" in one or "PYTHONPATH" in one for one in told["theirs"])
    assert str(tmp_path) not in told["files"]
    assert told["sid"] == told["pid"]
    assert told["limit"]["RLIMIT_CORE"] == 0
    assert told["limit"]["RLIMIT_NOFILE"] <= 256
    assert MEMORY <= told["limit"]["RLIMIT_DATA"] / 2**20 < MEMORY + 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give the child another user")
async def test_the_child_takes_on_the_user_that_it_is_given(
    open_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend(open_python, monkeypatch)
    body = "return Reading({'user': [os.getuid(), os.getgid(), os.getgroups()]})"
    with open_folder() as folder:
        async with at_work(written(folder, watcher(body)), run_as=lambda: RunAs((65534, 65534))) as scene:
            assert (await scene.look())["user"] == [65534, 65534, []]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may try to give the child another user")
async def test_a_child_that_cannot_take_on_its_user_says_what_failed(tmp_path: Path) -> None:
    nobody = RunAs((2**32 - 1, 2**32 - 1))
    with pytest.raises(CannotLoad, match="the action host can't be confined: it did not become user"):
        async with at_work(written(tmp_path, watcher("return Reading({})")), run_as=lambda: nobody):
            pass


async def test_plugins_bring_watchers_and_executors_of_their_own(tmp_path: Path) -> None:
    plugins = {
        "sample": "tests.integration.action_host.action_host_plugin:PLUGIN",
        "gone": "no.such.module:PLUGIN",
    }
    engine = written(tmp_path, watcher("return Reading({})"))
    async with at_work(engine, ReservedNames(names=(), keys=(), actions=()), plugins=plugins) as scene:
        assert [one.name for one in scene.hands.watchers] == ["sample", "queue"]
        assert await scene.look("sample") == {"sample": True}
        with pytest.raises(
            PulseError, match=r"ValueError: no \(tests/integration/action_host/action_host_plugin\.py:\d+\)"
        ):
            await scene.act("sample")
        assert [fault.whose for fault in scene.hands.faults] == ["plugin:gone"]
