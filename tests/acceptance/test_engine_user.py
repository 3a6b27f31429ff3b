"""A daemon that runs as root, and an engine with a user of its own: all that the kernel keeps apart."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.engine_user.account import Account
from pulse_adapters.engine_user.layout import layout_path
from pulse_adapters.git.create_repository import template_folder
from pulse_adapters.git.repository import Repository
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_adapters.workers.control_group import all_home_groups
from tests.acceptance.conftest import Served
from tests.control_groups import skip_without_groups
from tests.engine_user import ROOT_ALONE, cleared, open_folder, throwaway, uid_of

pytestmark = [ROOT_ALONE, pytest.mark.timeout(600)]
ADA = "Ada Lovelace <ada@example.org>"

LOOKS = {
    "list the home": "os.listdir(HOME)",
    "read the log": "open(HOME + '/events.db', 'rb').read(16)",
    "read what is sensed": "open(HOME + '/vitals.db', 'rb').read(16)",
    "read the settings": "open(HOME + '/config.toml').read()",
    "list run/": "os.listdir(HOME + '/run')",
    "read staging": "open(HOME + '/staging/engine.py').read()",
    "ask the daemon": "socket.socket(socket.AF_UNIX).connect(HOME + '/run/pulse.sock')",
    "read the daemon's environment": "open(f'/proc/{DAEMON}/environ').read()",
    "read the daemon's memory map": "open(f'/proc/{DAEMON}/maps').read()",
    "read the daemon's memory": "open(f'/proc/{DAEMON}/mem', 'rb').close()",
    "list the daemon's descriptors": "os.listdir(f'/proc/{DAEMON}/fd')",
    "see where the daemon is": "os.readlink(f'/proc/{DAEMON}/cwd')",
    "take a descriptor of the daemon": "syscall(438, os.pidfd_open(DAEMON), 0, 0)",
    "read passwords": "open('/etc/shadow').read()",
    "signal the daemon": "os.kill(DAEMON, 0)",
    "signal the daemon by its pidfd": "signal.pidfd_send_signal(os.pidfd_open(DAEMON), 0)",
    "give the daemon's processor away": "os.sched_setaffinity(DAEMON, os.sched_getaffinity(DAEMON))",
    "be root": "os.setresuid(0, 0, 0)",
    "be in root's group": "os.setresgid(0, 0, 0)",
    "be in another group": "os.setgroups([])",
}
"""Without effect, so that a test may see that root can do them."""

DEEDS = {
    "kill the daemon": "os.kill(DAEMON, signal.SIGKILL)",
    "make the daemon wait": "os.setpriority(os.PRIO_PROCESS, DAEMON, 19)",
    "limit the daemon": "resource.prlimit(DAEMON, resource.RLIMIT_NOFILE, (10, 10))",
    "trace the daemon": "checked(LIBC.ptrace(16, DAEMON, 0, 0))",
    "trace the rule host": "checked(LIBC.ptrace(16, rule_host(), 0, 0))",
    "write into the log": "open(HOME + '/events.db', 'r+b').write(b'x')",
    "change the settings": "open(HOME + '/config.toml', 'a')",
    "open the home": "os.chmod(HOME, 0o777)",
    "move the home": "os.rename(HOME, HOME + '.old')",
    "change main": "open(HOME + '/engine/engine.py', 'a')",
    "hook into git": "open(HOME + '/engine/.git/hooks/post-commit', 'w')",
    "change staging": "open(HOME + '/staging/engine.py', 'a')",
    "change what is laid out": "open(HOME + '/revisions/new', 'w')",
    "change its own code": "open(HERE + '/engine.py', 'a')",
    "add to its own code": "open(HERE + '/rules/new.py', 'w')",
    "make its own code writable": "os.chmod(HERE + '/engine.py', 0o666)",
    "move its own code": "os.rename(HERE, HERE + '.old')",
    "lay out other code": "os.mkdir(os.path.dirname(HERE) + '/' + 'f' * 40)",
    "settle among other homes": "os.mkdir(os.path.dirname(os.path.dirname(HERE)) + '/other')",
}

REFUSED = ("Permission denied", "Operation not permitted", "Function not implemented")

WATCHER = """
import ctypes, os, resource, signal, socket
from pulse_core import Reading

HOME, HERE, DAEMON = {home!r}, os.getcwd(), os.getppid()
LIBC = ctypes.CDLL(None, use_errno=True)


def checked(found):
    if found < 0:
        raise OSError(ctypes.get_errno(), "refused")


def syscall(*words):
    checked(LIBC.syscall(*map(ctypes.c_long, words)))


def rule_host():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line, parent = (open(f"/proc/{{pid}}/{{name}}", "rb").read() for name in ("cmdline", "stat"))
        except OSError:
            continue
        if b"rule_host.child" in line and parent.split()[3] == str(DAEMON).encode():
            return int(pid)


def tried(attack):
    try:
        exec(attack)
    except OSError as error:
        return os.strerror(error.errno)
    return "done"


class Attacker:
    name = key = "attacker"
    interval, timeout = 60.0, 20.0

    async def collect(self):
        said = {{name: tried(attack) for name, attack in {attacks!r}.items()}}
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        return Reading({{
            "said": said, "ids": [os.getresuid(), os.getresgid(), os.getgroups()], "here": HERE,
            "caps": [status[name].strip() for name in ("CapPrm", "CapEff", "CapAmb", "NoNewPrivs")],
        }})

    def should_wake(self, window):
        return False
"""
RULE = '''
import os
from pulse_core import Inner, Snapshot, Verdict

async def looks(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
    """Say who it is."""
    return (await inner(prev, curr)).noting(str((os.getresuid(), os.getgroups(), os.getcwd())))
'''


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with throwaway() as one:
        yield one


@pytest.fixture
def housed(account: Account, open_python: str) -> Iterator[Served]:
    """A home for an engine with a user, of which only its own modes keep others out."""
    with open_folder() as folder:
        served = Served(folder / "home")
        served.python = open_python
        served.configure(f'[engine]\nuser = "{account.name}"\n')
        try:
            yield served
        finally:
            served.close()
            cleared(served.home.path)


def founded(served: Served, files: dict[str, str]) -> Repository:
    """An engine of these files besides the template's."""
    repository, _ = Repository.create(served.home.path, template_folder(), ADA)
    if not files:
        return repository
    written(repository, files)
    repository.commit_staging("made for a test", ADA)
    commit = repository.candidate("made for a test", ADA)
    repository.point_main(commit, repository.head())
    return repository


def written(repository: Repository, files: dict[str, str]) -> None:
    for name, text in files.items():
        (repository.staging().path / name).write_text(text)


def running(served: Served) -> dict[str, Any]:
    """The daemon's word on the engine, once it runs."""
    served.eventually(lambda: served.status()["engine"]["runs"], "a host is up")
    return dict(served.status()["engine"])


def upulse(served: Served, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [served.python, "-m", "upulse_cli", *words, "--home", str(served.home.path)]
    return subprocess.run(argv, cwd="/", capture_output=True, text=True, timeout=120, check=False)


def of_user(account: Account) -> list[int]:
    """The processes of a user that live; one that is dead has no words any more."""
    pids = (int(one.name) for one in Path("/proc").glob("[0-9]*"))
    return [pid for pid in pids if uid_of(pid) == account.uid and words_of(pid)]


def words_of(pid: int) -> bytes:
    """How a process was called."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_its_rules_run_as_that_user_and_status_calls_that_full(housed: Served, account: Account) -> None:
    founded(housed, {"rules/looks.py": RULE, "engine.py": "from rules.looks import looks\nRULES = [looks]\n"})
    housed.start()
    engine = running(housed)
    assert engine["sandbox"]["user"] is True
    housed.eventually(lambda: len(of_user(account)) == 1, "the host that looked for watchers has ended")
    (host,) = of_user(account)
    ids = [line.split()[1:] for line in Path(f"/proc/{host}/status").read_text().splitlines()
           if line.startswith(("Uid:", "Gid:", "Groups:"))]  # fmt: skip
    assert ids == [[str(account.uid)] * 4, [str(account.gid)] * 4, []]
    here = layout_path(housed.home.path) / engine["runs"]
    assert os.readlink(f"/proc/{host}/cwd") == str(here)
    if all(engine["sandbox"].values()):
        assert "isolation: full" in upulse(housed, "status").stdout
    assert stat.S_IMODE(housed.home.path.stat().st_mode) == 0o700
    assert housed.stop() == 0
    assert of_user(account) == []


def test_what_the_kernel_refuses_its_hands_needs_no_sandbox(housed: Served, account: Account) -> None:
    home = str(housed.home.path)
    source = WATCHER.format(home=home, attacks={**LOOKS, **DEEDS})
    files = {"watchers/attacker.py": source}
    files["engine.py"] = "from watchers.attacker import Attacker\nRULES = []\nWATCHERS = [Attacker()]\n"
    founded(housed, files)
    housed.home.path.chmod(0o755)  # somebody has opened it; the daemon closes it before that user comes
    housed.start()
    running(housed)
    data: dict[str, Any] = {}

    def looked() -> bool:
        with SqliteVitalsReader(housed.home.path) as vitals:
            data.update({one.key: one.data for one in vitals.last_samples()}.get("attacker", {}))
        return bool(data)

    housed.eventually(looked, "the watcher has looked")
    assert {name: words for name, words in data["said"].items() if words not in REFUSED} == {}
    assert set(data["said"]) == {*LOOKS, *DEEDS}
    assert data["ids"] == [[account.uid] * 3, [account.gid] * 3, []]
    assert data["caps"] == ["0" * 16, "0" * 16, "0" * 16, "1"]
    assert data["here"].startswith(str(layout_path(housed.home.path)))
    assert housed.daemon is not None
    names = {"HOME": home, "DAEMON": housed.daemon.pid, "HERE": data["here"]}
    space = WATCHER.format(home=home, attacks={}).partition("class ")[0]
    code = f"{space}\nglobals().update({names!r})\nfor name, attack in {LOOKS!r}.items():\n    exec(attack)\n"
    subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60
    )  # root can: it is that user who can't


HIDER = """
import os
from pulse_core import Reading


class Hider:
    name = key = "hider"
    interval, timeout = 60.0, 20.0

    async def collect(self):
        for env in ({{}}, {{"PULSE_HANDS": "0" * 16}}):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.execve("/bin/sh", ["sh", "-c", "while :; do sleep 0.05 & sleep {seconds}; done"], env)
                os._exit(0)
        return Reading({{}})

    def should_wake(self, window):
        return False
"""


def test_what_hides_from_its_host_ends_at_the_next_start_and_with_the_engine(
    housed: Served, account: Account
) -> None:
    skip_without_groups()
    seconds = f"0.1{os.getpid()}"

    def hidden() -> set[int]:
        return {
            pid for pid in of_user(account) if seconds.encode() in words_of(pid) and b"while" in words_of(pid)
        }

    files = {"watchers/hider.py": HIDER.format(seconds=seconds)}
    files["engine.py"] = "from watchers.hider import Hider\nRULES = []\nWATCHERS = [Hider()]\n"
    founded(housed, files)
    housed.start()
    assert running(housed)["sandbox"]["control group"] is True
    housed.eventually(lambda: len(hidden()) == 2, "the watcher has looked")
    first = hidden()
    housed.kill()
    housed.eventually(lambda: hidden() == first, "no child is about to begin")
    housed.start()
    housed.eventually(lambda: len(hidden() - first) == 2, "the watcher has looked again")
    housed.eventually(lambda: not first & hidden(), "what the first daemon left has ended")
    assert upulse(housed, "engine", "disable").returncode == 0
    housed.eventually(lambda: of_user(account) == [], "all has ended with the engine")
    assert housed.stop() == 0
    assert all_home_groups(housed.home.path) == []


def test_gates_run_as_that_user_and_what_they_leave_decides_nothing(housed: Served, account: Account) -> None:
    repository, _ = Repository.create(housed.home.path, template_folder(), ADA)
    housed.start()
    running(housed)
    test = f"""
import os
import subprocess
from pathlib import Path

import pytest


def test_who_it_is(tmp_path: Path) -> None:
    assert os.getresuid() == ({account.uid},) * 3
    assert os.getgroups() == []
    Path.home().joinpath("kept").write_text("x")
    with pytest.raises(PermissionError):
        os.listdir({str(housed.home.path)!r})
    with pytest.raises(PermissionError):
        Path("tests/new.py").write_text("x")
    with pytest.raises(PermissionError):
        subprocess.Popen(["setsid", "env", "-i", "/bin/sleep", "9471"])
"""
    written(repository, {"tests/test_who.py": test})
    # As a root would see it whose Python is led to an author's modules.
    written(repository, {"ctypes.py": "raise SystemExit('root has imported this')\n"})
    said = upulse(housed, "promote", "-m", "who is it?", "--skip", "replay", "--why", "nothing is recorded")
    assert said.returncode == 0, said.stderr
    for gate in ("compiles", "types", "loads", "tests"):
        assert f"{gate:<10} passed" in said.stderr
    assert "isolation: partial" not in said.stderr
    whole = layout_path(housed.home.path)
    assert [one.name.partition("-")[0] for one in (whole / "cache").iterdir()] == ["mypy"]
    writes = ("find", str(whole), "-user", account.name, "-o", "-writable")
    found = subprocess.run(
        writes, user=account.uid, group=account.gid, stdout=subprocess.PIPE, timeout=60, check=False
    )
    assert found.stdout == b""
    assert not (housed.home.path / "cache").exists()
    assert of_user(account) != []  # the daemon's host
    assert not any(b"sandboxed_tool" in words_of(pid) for pid in of_user(account))


def test_a_user_that_is_gone_keeps_the_engine_from_running_and_nothing_else(housed: Served) -> None:
    founded(housed, {})
    housed.home.config.write_text('[engine]\nuser = "pulse-nobody-at-all"\n')
    refused = upulse(housed, "config", "check")
    assert refused.returncode == 1
    assert "engine.user: there is no user 'pulse-nobody-at-all' on this machine" in refused.stderr
    housed.start()
    housed.eventually(lambda: housed.status()["engine"]["restarts"], "it is tried to load the engine")
    assert housed.status()["engine"]["runs"] is None


def test_a_user_that_is_root_is_refused(housed: Served) -> None:
    housed.home.config.write_text('[engine]\nuser = "root"\n')
    assert "'root' is root, to whom nothing is closed" in upulse(housed, "config", "check").stderr


def test_dev_runs_staging_as_that_user(housed: Served, account: Account) -> None:
    repository = founded(housed, {})
    written(
        repository, {"rules/looks.py": RULE, "engine.py": "from rules.looks import looks\nRULES = [looks]\n"}
    )
    said = upulse(housed, "dev", "--once")
    assert said.returncode == 0, said.stderr
    copies = [one for one in layout_path(housed.home.path).iterdir() if one.name.startswith("lying-")]
    assert [(one / "rules" / "looks.py").read_text() for one in copies] == [RULE]
    assert not list(copies[0].glob(".git"))
