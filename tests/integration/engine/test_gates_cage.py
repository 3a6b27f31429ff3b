"""What runs in the gates `types` and `tests` is an author's code: attacks from a test and a conftest."""

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from pulse_adapters.sandbox import scratch_folder, tool_sandbox
from pulse_adapters.sandbox.scratch_folder import Scratch
from pulse_adapters.workers import process_tree
from pulse_adapters.workers.control_group import all_home_groups
from pulse_adapters.workers.host_groups import host_group
from pulse_core.ports.code_checks import GateFailed
from tests import processes
from tests.control_groups import skip_without_groups
from tests.integration.engine import gate_scene as gates
from tests.integration.engine.gate_scene import another, candidate, contents
from tests.long_form import sample, sampled

SPACE = """
import ctypes, mmap, os, resource, shutil, signal, socket, subprocess, sys, threading
from pathlib import Path

HOME, SECRET, PARENT, BYSTANDER, PORT = {names!r}
LIBC = ctypes.CDLL(None, use_errno=True)


def checked(found):
    if found < 0:
        raise OSError(ctypes.get_errno(), "refused")


def call(number, *words):
    checked(LIBC.syscall(ctypes.c_long(number), *map(ctypes.c_long, words)))


def pairs_send_to(path):
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", path)


def tried(attack):
    try:
        exec(attack, globals())
    except (OSError, RuntimeError) as error:
        return type(error).__name__
    return "done"

"""

LOOKS = {
    "read the settings": "open(HOME + '/config.toml').read()",
    "list the home": "os.listdir(HOME)",
    "list run/": "os.listdir(HOME + '/run')",
    "read staging": "open(HOME + '/staging/engine.py').read()",
    "read what the daemon will load": "open(HOME + '/engine/engine.py').read()",
    "read a secret": "open(SECRET).read()",
    "read passwords": "open('/etc/shadow').read()",
    "list where secrets are": "os.listdir(os.path.dirname(SECRET))",
    "read the caller's environment": "open(f'/proc/{PARENT}/environ').read()",
    "read another's environment": "open(f'/proc/{BYSTANDER}/environ').read()",
    "read its memory": "open(f'/proc/{PARENT}/mem', 'rb')",
    "list its descriptors": "os.listdir(f'/proc/{PARENT}/fd')",
    "connect to Pulse": "socket.socket(socket.AF_UNIX).connect(HOME + '/run/pulse.sock')",
    "connect to a port": "socket.create_connection(('127.0.0.1', PORT))",
    "send to a port": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "send to a socket from a pair": "pairs_send_to(HOME + '/run/heard.sock')",
    "have another kind of pair": "socket.socketpair(socket.AF_INET)",
    "signal the caller": "os.kill(PARENT, 0)",
    "open another process": "os.pidfd_open(BYSTANDER)",
    "begin a process": "subprocess.run(['/bin/true'])",
    "fork": "os.fork() or os._exit(0)",
    "be another program": "os.execv('/bin/true', ['true'])",
}
DEEDS = {
    "write into the home": "open(HOME + '/config.toml', 'a')",
    "write into run/": "open(HOME + '/run/new', 'w')",
    "write into engine/": "open(HOME + '/engine/rules/new.py', 'w')",
    "write into staging": "open(HOME + '/staging/rules/new.py', 'w')",
    "write what is cached": "open(HOME + '/cache/new', 'w')",
    "write beside itself": "open('rules/new.py', 'w')",
    "change itself": "open('rules/quiet_nights.py', 'a')",
    "make itself writable": "os.chmod('rules', 0o777)",
    "write into /tmp": "open('/tmp/pulse-was-here', 'w')",
    "open the secret for all": "os.chmod(SECRET, 0o777)",
    "stop another": "os.kill(BYSTANDER, signal.SIGSTOP)",
    "kill its own group": "os.killpg(0, signal.SIGKILL)",
    "trace another": "checked(LIBC.ptrace(16, BYSTANDER, 0, 0))",
    "slow another down": "os.setpriority(os.PRIO_PROCESS, BYSTANDER, 19)",
    "limit another": "resource.prlimit(BYSTANDER, resource.RLIMIT_NOFILE, (9, 9))",
    "begin a process by hand": "call(56, 17, 0, 0, 0, 0)",
    "begin one the new way": "call(435, 0, 0)",
}

TEST = """
from attack import DEEDS, tried


def test_attacks() -> None:
    said = {name: tried(attack) for name, attack in DEEDS.items()}
    assert {name: word for name, word in said.items() if word == "done"} == {}
    assert len(said) == NUMBER
"""
CONFTEST = "from attack import DEEDS, tried\nassert 'done' not in {tried(one) for one in DEEDS.values()}\n"


@pytest.fixture
def bystander() -> Iterator[int]:
    process = subprocess.Popen(["/bin/sleep", "600"], env={"SECRET": "in an environment"})
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(timeout=60)


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[tuple[socket.socket, ...]]:
    """A port, and two sockets in the home's run/."""
    (tmp_path / "home" / "run").mkdir(parents=True)
    with (
        socket.create_server(("127.0.0.1", 0)) as port,
        socket.socket(socket.AF_UNIX) as pulse,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as grams,
    ):
        pulse.bind(str(tmp_path / "home" / "run" / "pulse.sock"))
        pulse.listen()
        grams.bind(str(tmp_path / "home" / "run" / "heard.sock"))
        yield port, pulse, grams


@pytest.fixture
def attack(tmp_path: Path, bystander: int, heard: tuple[socket.socket, ...]) -> str:
    """A module that attacks; without effect, root can do what is in LOOKS."""
    secret = tmp_path / ".ssh" / "id_rsa"
    secret.parent.mkdir()
    secret.write_text("a key")
    names = (str(tmp_path / "home"), str(secret), os.getpid(), bystander, heard[0].getsockname()[1])
    return SPACE.replace("{names!r}", repr(names)) + f"DEEDS = {LOOKS | DEEDS!r}\n"


def test_what_a_test_or_a_conftest_does_it_does_to_nothing_but_its_scratch_folder(
    tmp_path: Path, attack: str, bystander: int
) -> None:
    test = TEST.replace("NUMBER", str(len(LOOKS | DEEDS)))
    files = {"tests/test_attack.py": test, "conftest.py": CONFTEST, "attack.py": attack}
    tried = candidate(tmp_path, files)
    (tried.home.path / "cache").mkdir(exist_ok=True)
    before = contents(tried.home.path)
    assert gates.tests(tried) == "3 passed"
    assert contents(tried.home.path) == before
    state = Path(f"/proc/{bystander}/stat").read_text().rpartition(")")[2].split()[0]
    assert state == "S"
    assert not Path("/tmp/pulse-was-here").exists()


def test_the_same_attacks_do_succeed_where_nothing_holds_them(tmp_path: Path, attack: str) -> None:
    """Else the test above could not fail."""
    candidate(tmp_path)
    looks = {
        name: look
        for name, look in LOOKS.items()
        if "another program" not in name and "kind of pair" not in name
    }
    code = f"{attack}\nprint({{name: word for name, look in {looks!r}.items() if (word := tried(look)) != 'done'}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "{}\n"


def test_what_lies_in_staging_under_the_name_of_a_tool_is_not_run_outside_the_cage(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w')\n"
    names = ("mypy.py", "pytest.py", "json.py", "ctypes.py", "sitecustomize.py", "upulse_cli.py")
    tried = candidate(tmp_path, dict.fromkeys(names, trap))
    for gate in (gates.types, gates.tests):
        with suppress(GateFailed):  # the names may well break the tools
            gate(tried)
    assert not (tmp_path / "sprung").exists()


REWRITES = """
from pathlib import Path


def test_rewrites() -> None:
    rules = Path(__file__).parents[1] / "rules"
    for change in (lambda: rules.chmod(0o777), lambda: (rules / "own.py").write_text("x"), rules.rmdir):
        try:
            change()
        except OSError:
            pass
"""


def test_a_loop_its_threads_and_files_of_its_own_work_and_what_it_rewrites_is_not_what_is_promoted(
    tmp_path: Path,
) -> None:
    test = """
import asyncio
import os
from pathlib import Path

import pytest


async def test_a_loop() -> None:
    assert await asyncio.to_thread(sum, [1, 2]) == 3
    await asyncio.sleep(0)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").rename(tmp_path / "b")
    assert Path.home().is_dir()
    assert (Path.home() / "kept").write_text("x") == 1
    assert "SECRET" not in os.environ


def test_it_gives_way_to_others() -> None:
    assert os.getpriority(os.PRIO_PROCESS, 0) >= 10
"""
    config = '[tool.pytest.ini_options]\naddopts = "-p pytest_asyncio.plugin"\nasyncio_mode = "auto"\n'
    files = {"tests/test_loop.py": test, "tests/test_rewrites.py": REWRITES, "rules/own.py": "OWN = 1\n"}
    tried = candidate(tmp_path, {**files, "pyproject.toml": config})
    before = contents(Path(tried.revision.path))
    assert gates.tests(tried) == "6 passed"
    assert contents(Path(tried.revision.path)) == before


WILD = [
    ("while True: pass", "did not end within"),
    ("for n in range(10**6): open(f'{tmp_path}/{n}', 'w')", "has written more than"),
    ("while True: print('x' * 10**6)", r"\w"),
    ("big = bytearray(10**11)", "MemoryError"),
    ("os._exit(0)", "ended before it could tell"),
    ("os.kill(os.getpid(), 9)", "not permitted"),
    ("[scribbled(fd) for fd in range(3, 64)]", "ended before it could tell"),
]
"""What a test does, and what is said of it."""


@pytest.mark.parametrize(("deed", "words"), sampled(WILD, 4))
def test_a_test_that_runs_wild_fails_its_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str, words: str
) -> None:
    scribbled = "def scribbled(fd):\n    try:\n        os.write(fd, b'[' * 9_000)\n    except OSError:\n        pass\n"
    test = f"import os\n\n\n{scribbled}\n\ndef test_wild(tmp_path, capfd):\n    with capfd.disabled():\n        {deed}\n"
    tried = candidate(tmp_path, {"tests/test_wild.py": test})
    if "did not end" in words:
        monkeypatch.setattr(tool_sandbox, "PATIENCE", 1.5)
    monkeypatch.setattr(tool_sandbox, "SCRATCH_FILES", 2_000)
    with pytest.raises(GateFailed, match=words):
        gates.tests(tried)


FORGED = [
    ('{"passed": 7, "failed": 3}', "7 passed, 3 failed; pytest ended with 0"),
    ('{"passed": 7, "failed": 99999999999999999999}', "ended before it could tell"),
    ('{"passed": 7, "failed": -1}', "ended before it could tell"),
    ('{"passed": "all"}', "ended before it could tell"),
]
"""What a test says that it was told, and what is made of it."""


@pytest.mark.parametrize(("ends", "words"), sample(FORGED[:2], FORGED))
def test_what_a_test_tells_in_the_place_of_pytest_is_no_pass_unless_it_is_one(
    tmp_path: Path, ends: str, words: str
) -> None:
    line = f'{{"tests": {ends}}}\n'
    test = f"""
import os


def test_forges():
    for fd in range(3, 64):
        try:
            os.write(fd, {line.encode()!r})
        except OSError:
            pass
    os._exit(0)
"""
    with pytest.raises(GateFailed, match=words):
        gates.tests(candidate(tmp_path, {"tests/test_forges.py": test}))


def test_a_gate_ends_with_its_promote(tmp_path: Path) -> None:
    tried = candidate(
        tmp_path, {"tests/test_waits.py": "import time\n\n\ndef test_waits():\n    time.sleep(600)\n"}
    )
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from pulse_adapters.sandbox.tool_sandbox import ToolJob, run
run(Path({tried.revision.path!r}), ToolJob("pytest", ("-q", "tests")))
"""
    promote = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 60

    def children() -> list[int]:
        return [pid for pid, one in process_tree.live_process_table().items() if one.parent == promote.pid]

    while not (found := children()):
        assert time.monotonic() < until
        time.sleep(0.02)
    while not processes.children(promote.pid, "sandboxed_tool") or not _is_bound(found[0]):
        assert time.monotonic() < until
        time.sleep(0.02)
    promote.send_signal(signal.SIGKILL)
    promote.wait(timeout=60)
    while found[0] in process_tree.live_process_table():
        assert time.monotonic() < until, "it outlives its promote"
        time.sleep(0.02)


def test_a_tool_runs_in_a_control_group_that_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_groups()
    tried, seen, wait = candidate(tmp_path), set[int](), tool_sandbox._wait

    def watched(child: "subprocess.Popen[bytes]", tool: str, scratch: Scratch) -> None:
        while child.poll() is None and child.pid not in seen:
            seen.update(all_home_groups(tmp_path)[0].members())
            time.sleep(0.02)
        wait(child, tool, scratch)

    monkeypatch.setattr(tool_sandbox, "_wait", watched)
    source, job = Path(tried.revision.path), tool_sandbox.ToolJob("pytest", ("-q", "tests"))
    assert tool_sandbox.run(source, job, make_group=partial(host_group, tmp_path)).exit == 0
    assert len(seen) == 1
    assert not list(all_home_groups(tmp_path)[0].children())


def _is_bound(pid: int) -> bool:
    """Whether it is locked in, which is when it dies with its parent."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return "NoNewPrivs:\t1" in lines


def test_where_the_kernel_lacks_a_part_the_gate_goes_on_and_says_so(tmp_path: Path) -> None:
    tried = candidate(tmp_path)
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from pulse_adapters.sandbox.seccomp import ALLOW, ENOSYS, begin, install_filter, when
from pulse_adapters.config.home import Home
from upulse_cli.wiring.engine import code_checks
from upulse_cli.wiring.home import home_context

install_filter([*begin({platform.machine()!r}), *when(444, [ENOSYS]), ALLOW])  # it knows no Landlock now
print(code_checks(home_context(Home(Path({str(tried.home.path)!r})))).tests({tried.revision.path!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "2 passed; isolation: partial (no landlock)\n", done.stderr


def test_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = "import os\n\n\ndef test_deep(tmp_path):\n    os.chdir(tmp_path)\n    for _ in range(1200):\n" \
           "        os.mkdir('d')\n        os.chdir('d')\n"  # fmt: skip
    tried = candidate(tmp_path, {"tests/test_deep.py": test})  # before: its first one keeps a repository
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    monkeypatch.setattr(scratch_folder, "OF_ROOT", str(place))
    assert gates.tests(tried) == "3 passed"
    assert list(place.iterdir()) == []
    assert another(tried.home, {"rules/own.py": "OWN = 1\n"}).revision.path != tried.revision.path
