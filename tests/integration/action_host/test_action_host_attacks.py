"""What engines' watchers and executors do wrong costs them their call; nothing of it is left, and the daemon goes on."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.action_host import process
from pulse_adapters.action_host.supervisor import SAMPLE_BYTES_A_MINUTE
from pulse_core.model.errors import PulseError
from pulse_core.ports.executor import Unsure
from tests.integration.action_host.action_host_scene import (
    HERE,
    Scene,
    at_work,
    executor,
    is_running,
    place_of,
    until,
    watcher,
    written,
)
from tests.long_form import sampled
from tests.processes import child_of_test

FINE = watcher("return Reading({'well': True})", "fine")
STAYS = {
    "raises": ("raise ValueError('no')  # here", "ValueError: no"),
    "raises SystemExit": ("raise SystemExit(1)  # here", "SystemExit: 1"),
    "raises KeyboardInterrupt": ("raise KeyboardInterrupt  # here", "KeyboardInterrupt"),
    "raises what nobody catches": ("raise type('Worse', (BaseException,), {})('!')  # here", "Worse: !"),
    "cancels itself": ("raise asyncio.CancelledError  # here", "it cancelled itself"),
    "sleeps": ("await asyncio.sleep(60)  # here", "was not done within 0.5 s, and was ended"),
    "answers nothing": ("return None", "not NoneType"),
    "answers a list": ("return Reading([1])", "no mapping but list"),
    "answers what is no JSON": ("return Reading({'x': {1, 2}})", "not JSON serializable"),
    "answers what is no number": ("return Reading({'x': float('nan')})", "not JSON compliant"),
    "answers half a character": ("return Reading({'x': '\\ud800'})", "surrogates not allowed"),
    "answers an enormous sample": ("return Reading({'x': 'x' * 10**7})", "10,000,0"),
    "answers itself": ("x = {}\nx['x'] = x\nreturn Reading(x)", "Circular"),
    "wants much memory": ("x = bytearray(10**10)  # here", "MemoryError"),
    "says what cannot be spelled": (
        "raise type('Mute', (Exception,), {'__str__': lambda self: 1/0})()  # here",
        "cannot be spelled",
    ),
}
ENDS = {
    "hangs in C": ("sum(range(10**13))  # here", "did not end within 0.5 s"),
    "sleeps without await": ("time.sleep(60)  # here", "did not end within 0.5 s"),
    "hangs in a thread": ("await asyncio.to_thread(time.sleep, 60)", "did not end within 0.5 s"),
    "will not be cancelled": (
        "while True:\n    try:\n        await asyncio.sleep(60)\n    except BaseException:\n        pass",
        "did not end within 0.5 s",
    ),
    "stops itself": ("os.kill(os.getpid(), 19)", "did not end within 0.5 s"),
    "ends itself": ("os._exit(3)", "ended with status 3"),
    "ends as if all were well": ("os._exit(0)", "ended with status 0"),
    "kills itself": ("os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
    "kills its group": ("os.killpg(0, 9)", "was ended by SIGKILL"),
    "crashes": ("import ctypes\nctypes.string_at(0)  # here", "was ended by SIGSEGV"),
    "stops the loop": ("asyncio.get_running_loop().stop()\nawait asyncio.sleep(60)", "ended with status 1"),
    "closes every descriptor": ("os.closerange(0, 100)\nawait asyncio.sleep(60)", ""),
    "writes garbage": ("os.write(3, b'x' * 65536)\nawait asyncio.sleep(60)", "a message of"),
    "writes no JSON": ("os.write(3, b'\\0\\0\\0\\1x')\nawait asyncio.sleep(60)", "what is no JSON"),
    "forges an answer": (
        "body = b'{\"id\": 77, \"ok\": {}}'\nos.write(3, len(body).to_bytes(4, 'big') + body)\nawait asyncio.sleep(60)",
        "nobody asked for",
    ),
    "raises SystemExit elsewhere": (
        "async def f():\n    raise SystemExit(9)  # here\nasyncio.ensure_future(f())\nawait asyncio.sleep(60)",
        "ended with status 1",
    ),
}


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has much to do beside others is not taken for one that hangs."""
    monkeypatch.setattr(process, "GRACE", 20.0)


@pytest.mark.usefixtures("patience")
async def test_a_look_that_fails_is_an_error_with_its_place_and_no_more(tmp_path: Path) -> None:
    """In one host, which outlives them all."""
    bad = {f"bad{number}": name for number, name in enumerate(STAYS)}
    looks = [
        watcher(
            STAYS[name][0].replace(HERE, f"{HERE}: {key}."), key, timeout=0.5 if name == "sleeps" else 60.0
        )
        for key, name in bad.items()
    ]
    async with at_work(written(tmp_path, *looks, FINE)) as scene:
        pid = scene.pid
        for key, name in bad.items():
            body, words = STAYS[name]
            with pytest.raises(PulseError) as caught:
                await scene.look(key)
            assert words in str(caught.value), name
            if HERE in body:
                assert f"({place_of(tmp_path, f'{HERE}: {key}.')})" in str(caught.value), name
            assert await scene.look("fine") == {"well": True}, name
            assert (scene.pid, scene.faults) == (pid, []), name


@pytest.mark.wall_clock
@pytest.mark.parametrize("name", sampled(ENDS, 6))
async def test_a_look_that_ends_or_hangs_its_host_is_named_and_the_host_replaced(
    name: str, tmp_path: Path
) -> None:
    body, words = ENDS[name]
    async with at_work(
        written(tmp_path, watcher(body, timeout=0.5 if "0.5 s" in words else 20.0), FINE)
    ) as scene:
        pid, began = scene.pid, time.monotonic()
        with pytest.raises(PulseError) as caught:
            await scene.look()
        assert time.monotonic() - began < 10
        told = "\n".join((str(caught.value), *(fault.message for fault in scene.faults)))
        assert words in told
        if HERE in body:
            assert f"({place_of(tmp_path)})" in told
        assert await scene.look("fine") == {"well": True}
        assert scene.pid != pid
        assert not is_running(pid)
        assert len(scene.faults) <= 1


async def test_what_is_printed_goes_nowhere_and_holds_nothing_up(tmp_path: Path) -> None:
    body = "for n in range(200):\n    print('x' * 10**6)\n    os.write(2, b'x' * 10**6)\nreturn Reading({'done': True})"
    async with at_work(written(tmp_path, watcher(body))) as scene:
        assert await scene.look() == {"done": True}


async def test_nudges_without_end_come_once_a_second(tmp_path: Path) -> None:
    body = """
    async def nag():
        while True:
            self.nudge.set()
            await asyncio.sleep(0)
    self.task = asyncio.ensure_future(nag())
    return Reading({})
    """
    async with at_work(written(tmp_path, watcher(body))) as scene:
        began = time.monotonic()
        await scene.look()
        nudge = scene.hands.watchers[0].nudge
        times: list[Any] = []
        async with asyncio.timeout(60):
            while len(times) < 3:
                await nudge.wait()
                nudge.clear()
                times.append(time.monotonic())
        assert times[2] - began > 1.8


# What one that hangs does to others


async def test_a_nudge_that_blocks_its_host_puts_no_end_off(tmp_path: Path) -> None:
    before = "class Nudge(asyncio.Event):\n    async def wait(self):\n        time.sleep(600)  # here\n"
    bad = watcher("return Reading({})", timeout=0.2).replace("asyncio.Event()", "Nudge()")

    async def looks(scene: Scene) -> None:
        while True:  # the first one may be over before it blocks
            await scene.look()

    async with at_work(written(tmp_path, bad, before=before)) as scene:
        looking = asyncio.ensure_future(looks(scene))
        await asyncio.wait([looking], timeout=20)
        assert looking.done()
        with pytest.raises(PulseError, match=f"did not end within 0.2 s.*{place_of(tmp_path)}"):
            await looking


HANGS = watcher("sum(range(10**13))  # here", "bad", timeout=0.2)
WORKS = """
open(params.path, 'a').write('x')
size = os.path.getsize(params.path)
await asyncio.sleep(0 if size > 1 else 60)
return Result({'n': size})
"""


async def struck(scene: Scene, path: Path) -> "asyncio.Future[object]":
    """An action that is under way while the host hangs."""
    act: asyncio.Future[object] = asyncio.ensure_future(scene.act(path=str(path)))
    await until(path.exists)
    with pytest.raises(PulseError, match="did not end within"):
        await scene.look("bad")
    return act


async def test_an_at_most_once_action_under_way_is_unsure(tmp_path: Path) -> None:
    source = executor(WORKS, policy="Policy(Safety.AT_MOST_ONCE, timeout=30)")
    async with at_work(written(tmp_path, source, HANGS)) as scene:
        with pytest.raises(Unsure) as caught:
            await (await struck(scene, tmp_path / "out"))
        assert "broken off: watcher:bad did not end" in str(caught.value)
        assert place_of(tmp_path) in str(caught.value)
        assert (tmp_path / "out").read_text() == "x"


async def test_an_idempotent_action_under_way_has_failed_and_may_be_tried_again(tmp_path: Path) -> None:
    source = executor(WORKS, policy="Policy(Safety.IDEMPOTENT, timeout=30)")
    async with at_work(written(tmp_path, source, HANGS)) as scene:
        act = await struck(scene, tmp_path / "out")
        with pytest.raises(PulseError, match="broken off"):
            await act
        assert (await scene.act(path=str(tmp_path / "out"))).data == {"n": 2}


@pytest.mark.parametrize("has_happened", sampled([True, False], 2))
async def test_a_verify_first_action_under_way_is_looked_at(has_happened: bool, tmp_path: Path) -> None:
    verify = f"return Result({{'seen': True}}) if {has_happened} else None"
    source = executor(WORKS, policy="Policy(Safety.VERIFY_FIRST, timeout=30)", verify=verify)
    async with at_work(written(tmp_path, source, HANGS)) as scene:
        act = await struck(scene, tmp_path / "out")
        if has_happened:
            assert (await act).data == {"seen": True}  # type: ignore[attr-defined]  # it is a result
        else:
            with pytest.raises(PulseError, match="broken off"):
                await act


async def test_who_blocks_the_others_has_its_own_time_and_they_wait(tmp_path: Path) -> None:
    slow = watcher("time.sleep(1.5)\nreturn Reading({'slow': True})", "slow")
    quick = watcher("await asyncio.sleep(0.01)\nreturn Reading({})", timeout=1.0)
    async with at_work(written(tmp_path, slow, quick)) as scene:
        pid = scene.pid
        first = asyncio.ensure_future(scene.look("slow"))
        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0)), first], return_when="FIRST_COMPLETED")
        assert await scene.look() == {}
        assert await first == {"slow": True}
        assert (scene.pid, scene.faults) == (pid, [])


@pytest.mark.wall_clock
async def test_the_daemons_loop_is_not_held_up_by_the_end_of_a_host(tmp_path: Path) -> None:
    async with at_work(written(tmp_path, HANGS)) as scene:
        look = asyncio.ensure_future(scene.look("bad"))
        worst = 0.0
        while not look.done() or not scene.supervisor.alive:
            began = time.monotonic()
            await asyncio.sleep(0.005)
            worst = max(worst, time.monotonic() - began - 0.005)
        with pytest.raises(PulseError):
            await look
        assert worst < 0.1


# What is begun is ended

SECONDS = f"97.{os.getpid()}"
"""What the programs of these tests sleep, and of no other ones that run beside them."""
SLEEPERS = {
    "in its session": f"subprocess.Popen(['sleep', '{SECONDS}'])",
    "in a session of its own": f"subprocess.Popen(['sleep', '{SECONDS}'], start_new_session=True)",
    "without an environment": f"subprocess.Popen(['sleep', '{SECONDS}'], start_new_session=True, env={{}})",
    "out of a shell": f"subprocess.run('setsid sleep {SECONDS} & exit', shell=True)",
    "by the loop": f"await asyncio.create_subprocess_exec('sleep', '{SECONDS}', start_new_session=True)",
}
SHORT = "Policy(Safety.AT_MOST_ONCE, timeout=2)"
FORK = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(params.path + '.new', 'w').write(str(os.getpid()))
        os.rename(params.path + '.new', params.path)
        time.sleep(97)
    os._exit(0)
while not os.path.exists(params.path):
    time.sleep(0.01)
os._exit(7)
"""


def sleepers() -> list[int]:
    """The processes that sleep as these tests have them do."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_bytes() == f"sleep\0{SECONDS}\0".encode():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("how", sampled(SLEEPERS, 3))
async def test_what_a_call_began_ends_when_its_time_is_over(how: str, tmp_path: Path) -> None:
    before, begun = set(sleepers()), tmp_path / "begun"
    body = f"{SLEEPERS[how]}\nopen(params.path, 'w')\nawait asyncio.sleep(60)"
    source = executor(body, policy=SHORT)
    async with at_work(written(tmp_path / "engine", source)) as scene:
        pid = scene.pid
        with pytest.raises(PulseError, match="was not done within"):
            await scene.act(path=str(begun))
        assert begun.exists()
        assert not set(sleepers()) - before
        assert scene.pid == pid


@pytest.mark.usefixtures("patience")
async def test_what_a_call_began_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    before = set(sleepers())
    body = f"await (await asyncio.create_subprocess_exec('sleep', '{SECONDS}')).wait()"
    policy = "Policy(Safety.IDEMPOTENT, timeout=30)"
    async with at_work(written(tmp_path, executor(body, policy=policy))) as scene:
        pid, act = scene.pid, asyncio.ensure_future(scene.act())
        await until(lambda: set(sleepers()) - before)
        act.cancel()
        with pytest.raises(asyncio.CancelledError):
            await act
        assert not set(sleepers()) - before
        assert scene.pid == pid


@pytest.mark.usefixtures("patience")
async def test_a_call_that_leaves_no_descriptor_is_answered_and_what_it_began_ends_with_its_host(
    tmp_path: Path,
) -> None:
    before = set(sleepers())
    body = f"{SLEEPERS['in its session']}\nself.held = []\n"
    body += "while True: self.held.append(os.open(os.devnull, os.O_RDONLY))"
    async with at_work(written(tmp_path, executor(body))) as scene:
        pid = scene.pid
        with pytest.raises(PulseError, match="Too many open files"):
            await scene.act()
        await until(lambda: scene.pid != pid and not set(sleepers()) - before)


@pytest.mark.usefixtures("patience")
async def test_what_another_call_began_lives_on(tmp_path: Path) -> None:
    before = set(sleepers())
    good = watcher(SLEEPERS["in its session"] + "\nreturn Reading({})")
    bad = executor(SLEEPERS["in its session"] + "\nawait asyncio.sleep(60)", policy=SHORT)
    async with at_work(written(tmp_path, good, bad)) as scene:
        await scene.look()
        await until(lambda: set(sleepers()) - before)  # a program that just begins has no words yet
        kept = set(sleepers()) - before
        with pytest.raises(PulseError):
            await scene.act()
        assert set(sleepers()) - before == kept
        assert len(kept) == 1
    assert not set(sleepers()) - before


async def test_children_of_a_host_that_ended_itself_are_ended(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    policy = "Policy(Safety.AT_MOST_ONCE, timeout=60)"
    async with at_work(written(tmp_path / "engine", executor(FORK, policy=policy))) as scene:
        with pytest.raises(Unsure, match="ended with status 7"):
            await scene.act(path=str(note))
        child = int(note.read_text())
        await until(lambda: scene.supervisor.alive)
        assert not is_running(child)
        assert [fault.whose for fault in scene.faults] == ["executor:beep"]


async def test_a_host_that_ends_again_and_again_is_started_ever_later(tmp_path: Path) -> None:
    async with at_work(written(tmp_path, watcher("os._exit(1)", timeout=20.0))) as scene:
        times = [time.monotonic()]
        for _ in range(3):
            with pytest.raises(PulseError):
                await scene.look()
            times.append(time.monotonic())
        assert times[2] - times[0] >= 0.5
        assert times[3] - times[1] >= 1.0


DAEMON = """
import asyncio, sys
from tests.integration.action_host.action_host_scene import at_work, until
from pulse_core.ports.engine import Revision

async def main():
    async with at_work(Revision("0", sys.argv[1])) as scene:
        look = asyncio.ensure_future(scene.look("bad"))
        await until(lambda: scene.child.mark())
        print(scene.pid, flush=True)
        await look

asyncio.run(main())
"""


async def test_watchers_of_an_engine_bring_so_much_a_minute_and_no_more(tmp_path: Path) -> None:
    source = watcher("return Reading({'text': 'x' * 60_000})")
    async with at_work(written(tmp_path, source)) as scene:
        await scene.look()
        scene.supervisor.spend_sample(64 * SAMPLE_BYTES_A_MINUTE)
        with pytest.raises(
            PulseError, match=r"its sample is left out: .* more than 1,048,576 bytes a minute"
        ):
            await scene.look()
        assert scene.supervisor.alive


async def test_what_takes_long_to_decode_is_its_authors_fault_or_its_hosts(tmp_path: Path) -> None:
    """Numbers take the loop many times as long as a text of the same size does."""
    forges = """
os.write(3, len(body := b'{"id": 1, "data": [' + b"0," * 100_000 + b"0]}").to_bytes(4, "big") + body)
await asyncio.sleep(60)
"""
    honest = watcher("return Reading({'numbers': [0] * 21_000})", "many")
    async with at_work(written(tmp_path, honest)) as scene:
        with pytest.raises(
            PulseError, match=r"its data have 20,999 commas as JSON; at most 20,000 are taken"
        ):
            await scene.look("many")
        assert scene.supervisor.alive
    async with at_work(written(tmp_path / "forged", "import os\n" + watcher(forges, "forges"))) as scene:
        with pytest.raises(PulseError, match=r"JSON with 100,001 commas; at most 20,000 are taken"):
            await scene.look("forges")


async def test_a_host_that_hangs_ends_with_its_daemon(tmp_path: Path) -> None:
    written(tmp_path, watcher("sum(range(10**13))", "bad", timeout=60.0))
    daemon = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        DAEMON,
        str(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert daemon.stdout is not None
    pid = int(await daemon.stdout.readline())
    assert is_running(pid)
    daemon.kill()
    await daemon.wait()
    await until(lambda: not is_running(pid))


async def test_who_has_got_the_number_of_a_host_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    async with at_work(written(tmp_path, watcher("return Reading({})"))) as scene:
        child = scene.child
        child.kill()
        await until(lambda: child.has_ended and not is_listed(child.pid))
        with child_of_test(subprocess.Popen(["sleep", "60"], start_new_session=True)) as stranger:
            try:
                child.pid = stranger.pid
                await child.shut_down(0.0)
                assert stranger.poll() is None
            finally:
                stranger.kill()


def is_listed(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    return Path(f"/proc/{pid}").exists()
