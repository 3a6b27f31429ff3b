"""What a rule must not be able to do, tried from inside one."""

import mmap
import os
import platform
import resource
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_adapters.sandbox import confinement, landlock, seccomp
from pulse_adapters.workers.control_group import all_home_groups
from pulse_adapters.workers.host_groups import host_group
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.workers.syscall_numbers import NUMBERS
from pulse_core.ports.engine import LoadedRevision
from tests.control_groups import skip_without_groups
from tests.engine_user import open_folder
from tests.integration.rule_host.rule_host_engines import folded, host_supervisor, rule, written
from tests.processes import child_of_test

ACTS = {
    "read the log": 'open(HOME + "/events.db", "rb").read(1)',
    "write the log": 'open(HOME + "/events.db", "r+b").write(b"x")',
    "open the log with sqlite": '__import__("sqlite3").connect(HOME + "/events.db").execute("select * from event")',
    "read the settings": 'open(HOME + "/config.toml").read()',
    "list the home": "os.listdir(HOME)",
    "truncate the settings": 'os.truncate(HOME + "/config.toml", 0)',
    "remove the settings": 'os.unlink(HOME + "/config.toml")',
    "rename the settings": 'os.rename(HOME + "/config.toml", os.environ["TMPDIR"] + "/x")',
    "link to the settings": 'os.link(HOME + "/config.toml", os.environ["TMPDIR"] + "/x")',
    "make a folder": 'os.mkdir(HOME + "/new")',
    "make a symbolic link": 'os.symlink("/etc", os.environ["TMPDIR"] + "/etc")',
    "make a pipe": 'os.mkfifo(os.environ["TMPDIR"] + "/fifo")',
    "make others' files its own": 'os.chown(HOME + "/config.toml", 1, 1)',
    "open them to all": 'os.chmod(HOME + "/config.toml", 0o777)',
    "change their time": 'os.utime(HOME + "/config.toml")',
    "mark them": 'os.setxattr(HOME + "/config.toml", "user.x", b"x")',
    "read the parent's environment": 'open(f"/proc/{PARENT}/environ", "rb").read()',
    "read the parent's memory": 'open(f"/proc/{PARENT}/mem", "rb")',
    "read its own environment in /proc": 'open("/proc/self/environ", "rb")',
    "list processes": 'os.listdir("/proc")',
    "read a home directory": 'os.listdir(os.path.expanduser("~root"))',
    "read users": 'open("/etc/passwd").read()',
    "read the machine's id": 'open("/etc/machine-id").read()',
    "list temporary files": 'os.listdir("/tmp")',
    "write beside the home": 'open(HOME + "-attack", "w")',
    "write to shared memory": 'open("/dev/shm/pulse-attack", "w")',
    "write to the terminal": 'open("/dev/tty", "w")',
    "TCP": "socket.create_connection(('127.0.0.1', PORT), 1)",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "TCP over IPv6": "socket.socket(socket.AF_INET6)",
    "a Unix socket": "socket.socket(socket.AF_UNIX).connect(HOME + '/run/pulse.sock')",
    "an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0pulse')",
    "a pair of sockets": "socket.socketpair()",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "a name's address": "socket.getaddrinfo('localhost', 80)",
    "fork": "os.fork()",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "exec": "os.execv('/bin/true', ['true'])",
    "a shell": "1 / (os.system('true') == 0)",
    "a thread": "__import__('_thread').start_new_thread(print, ())",
    "SIGTERM to the parent": "os.kill(PARENT, 15)",
    "SIGKILL to a pidfd": "os.pidfd_open(PARENT)",
    "a signal to all": "os.kill(-1, 15)",
    "a signal to the group of the parent": "os.killpg(GROUP, 15)",
    "a signal by way of I/O": "fcntl.fcntl(0, fcntl.F_SETOWN, PARENT)",
    "a signal by way of I/O on a terminal": "fcntl.ioctl(0, 0x8901, PARENT.to_bytes(4, 'little'))",
    "a lease of what the daemon may import": "fcntl.fcntl(os.open(os.__file__, os.O_RDONLY), 1024, fcntl.F_WRLCK)",
    "a lease of a folder": "fcntl.fcntl(os.open(os.path.dirname(os.__file__), os.O_RDONLY), 1040, b' ' * 8)",
    "signals for changes in a folder": "fcntl.fcntl(os.open(os.path.dirname(os.__file__), os.O_RDONLY), 1026, 2)",
    "flags of a file": "fcntl.ioctl(os.open(os.__file__, os.O_RDONLY), 0x40086602, bytes(8))",
    "watches on files": "syscall(NUMBERS['inotify_init1'], 0)",
    "timers that signal": "libc('timer_create', 0, None, ctypes.create_string_buffer(8))",
    "asynchronous reads, which are counted for all": "syscall(NUMBERS['io_setup'], 1, ctypes.byref(ctypes.c_ulong()))",
    "memory in files without a name": "os.memfd_create('x')",
    "a wait for all disks": "1 / (syscall(NUMBERS['sync']) is not None)",
    "a wait for a disk": "syscall(NUMBERS['syncfs'], os.open(os.__file__, os.O_RDONLY))",
    "a lower priority of the parent": "os.setpriority(os.PRIO_PROCESS, PARENT, 19)",
    "a higher priority of its own": "os.nice(-10)",
    "limits of the parent": "resource.prlimit(PARENT, resource.RLIMIT_NOFILE)",
    "other limits of its own": "libc('setrlimit', 1, (ctypes.c_ulong * 2)(1, 1))",
    "another scheduler": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "other processors": "os.sched_setaffinity(PARENT, {0})",
    "another user": "os.setuid(12345)",
    "another root": "os.chroot('/')",
    "ptrace": "libc('ptrace', 16, PARENT, 0, 0)",
    "memory of the parent": "libc('process_vm_readv', PARENT, 0, 0, 0, 0, 0)",
    "a mount": "libc('mount', b'none', b'/mnt', b'tmpfs', 0, None)",
    "unshare": "libc('unshare', 0x10000000)",
    "bpf": "syscall(NUMBERS['bpf'])",
    "io_uring": "syscall(NUMBERS['io_uring_setup'], 1, 0)",
    "keys": "syscall(NUMBERS['keyctl'], 0, 0)",
    "userfaultfd": "syscall(NUMBERS['userfaultfd'], 1)",
    "perf events": "syscall(NUMBERS['perf_event_open'], 0, 0, -1, -1, 0)",
    "a file by its handle": "syscall(NUMBERS['open_by_handle_at'], -100, 0, 0)",
    "system calls of x32": "syscall(0x40000000 + 39)",
    "shared memory of System V": "libc('shmget', 0, 4096, 0o1000)",
    "a clock": "os.sethostname('x') if hasattr(os, 'sethostname') else __import__('socket').sethostname('x')",
    "more than a file may hold": "os.truncate(open(os.environ['TMPDIR'] + '/big', 'wb').fileno(), 2**24 + 1)",
    "many open files": "[os.dup(0) for _ in range(100)]",
}

_BEFORE = """
import ctypes, fcntl, os, resource, socket, sqlite3
HOME, PARENT, GROUP, PORT = {home!r}, {parent}, {group}, {port}
NUMBERS = {numbers!r}
_libc = ctypes.CDLL(None, use_errno=True)

def libc(name, *given):
    if getattr(_libc, name)(*given) == -1:
        raise OSError(ctypes.get_errno(), name)

def syscall(number, *given):
    if _libc.syscall(number, *given) == -1:
        raise OSError(ctypes.get_errno(), str(number))

ACTS = {acts!r}
REFUSALS = OSError, RuntimeError, ZeroDivisionError, sqlite3.OperationalError
"""
_BODY = """
notes = []
for name, act in ACTS.items():
    try:
        exec(act)
    except REFUSALS as error:
        notes.append(f"{name}: refused {type(error).__name__} {error}")
    except BaseException as error:
        notes.append(f"{name}: {type(error).__name__} {error}")
    else:
        notes.append(f"{name}: done")
return Verdict(notes=tuple(notes))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with what nobody may have."""
    root = tmp_path_factory.mktemp("home")
    sqlite3.connect(root / "events.db").execute("create table event (seq)").connection.close()
    (root / "config.toml").write_text("secret = 1")
    return root


@pytest.fixture
async def notes(home: Path, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """What came of each act."""
    here = 0 if platform.machine() == "x86_64" else 1
    numbers = {name: both[here] for name, both in NUMBERS.items()}
    with child_of_test(subprocess.Popen(["sleep", "60"])) as parent:
        told = {
            "home": str(home),
            "parent": parent.pid,
            "group": os.getpgid(parent.pid),
            "port": 9,
            "numbers": numbers,
        }
        source = rule(_BODY, before=_BEFORE.format(acts=ACTS, **told))
        assert "ACTS = {" in source
        async with host_supervisor(written(tmp_path, source)) as host:
            fold_result = await folded(host, 2)
            assert host.alive, fold_result
            assert not fold_result.faults, fold_result
            yield dict(note.split(": ", 1) for note in fold_result.verdict.notes)
        assert parent.poll() is None
        parent.kill()


async def test_every_act_is_refused(notes: dict[str, str], home: Path) -> None:
    assert notes.keys() == ACTS.keys()
    assert {name: note for name, note in notes.items() if not note.startswith("refused")} == {}
    assert (home / "config.toml").read_text() == "secret = 1"
    assert not Path(f"{home}-attack").exists()


async def loaded(
    tmp_path: Path, hosts: ChildHosts, body: str
) -> tuple[LoadedRevision, tuple[str, ...], list[str]]:
    before = "import os, resource"
    async with host_supervisor(written(tmp_path, rule(body, before=before)), hosts=hosts) as host:
        status = Path(f"/proc/{host.pid}/status").read_text().splitlines()
        opened = [os.readlink(fd).partition(":")[0] for fd in Path(f"/proc/{host.pid}/fd").iterdir()]
        assert sorted(opened) == [*["/dev/null"], "/memfd", *["pipe"] * 5], opened
        fold_result = await folded(host, 2)
        assert not fold_result.faults
        return host.loaded, fold_result.verdict.notes, status


async def test_a_host_lives_in_a_control_group_that_goes_with_it(tmp_path: Path) -> None:
    skip_without_groups()
    hosts = ChildHosts(group=partial(host_group, tmp_path))
    async with host_supervisor(written(tmp_path / "engine", rule("return Verdict()")), hosts=hosts) as host:
        (folder,) = all_home_groups(tmp_path)
        assert folder.members() == {host.pid}
        assert host.loaded.sandbox["control group"] is True
        limits = host.loaded.sandbox["control group limits"]
        assert limits is ("pids" in next(iter(folder.children())).controllers())
        assert set(host.loaded.missing) == (set() if limits else {"control group limits"})
    assert not list(folder.children())


async def test_each_part_of_the_sandbox_is_told(tmp_path: Path) -> None:
    found, notes, status = await loaded(
        tmp_path,
        ChildHosts(),
        """
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        return Verdict(notes=(str(sorted(os.environ)), os.environ['PYTHONHASHSEED'], str(nice)))
        """,
    )
    assert found.sandbox == {
        "landlock": landlock.abi(),
        "seccomp": True,
        "rlimits": True,
        "user": False,
        "control group": False,
    }
    known = {"PATH", "LANG", "LC_CTYPE", "PYTHONHASHSEED", "PYDANTIC_DISABLE_PLUGINS", "TMPDIR", "PYTHONPATH"}
    assert set(eval(notes[0])) <= known
    assert notes[1:] == ("0", str(min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)))
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert "CapEff:\t0000000000000000" in status


async def test_as_root_it_can_be_given_a_user_of_its_own() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give it one")
    with open_folder() as folder:
        found, notes, _ = await loaded(
            folder,
            ChildHosts(run_as=lambda: RunAs((65534, 65534))),
            "return Verdict(notes=(str(os.getresuid()), str(os.getresgid()), str(os.getgroups())))",
        )
    assert found.sandbox["user"] is True
    assert notes == ("(65534, 65534, 65534)", "(65534, 65534, 65534)", "[]")


def test_without_landlock_and_seccomp_the_rest_goes_on(tmp_path: Path) -> None:
    code = f"""
from pulse_adapters.rule_host import child
from pulse_adapters.sandbox.confinement import confine_process, landlock, seccomp
landlock.abi = lambda: None
seccomp.supported = lambda: False
print(confine_process(["/"], {str(tmp_path)!r}, 2**29, None))
"""
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert eval(said) == {"landlock": None, "seccomp": False, "rlimits": True, "user": False}


def test_a_library_whose_path_is_no_text_is_among_what_may_be_read(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.mkdir(folder)
    with open(os.path.join(folder, b"one.so"), "w+b") as file:
        file.write(b"x")
        file.flush()
        with mmap.mmap(file.fileno(), 1):
            assert os.fsdecode(folder) in confinement._python()


@pytest.mark.parametrize("roomy", [False, True])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_within_what_the_kernel_takes(machine: str, roomy: bool) -> None:
    program = seccomp.build_filter(machine, 1234, roomy)
    assert len(program) < 4096
    assert program[-1] == (0x06, 0, 0, 0x7FFF0000), "whatever is not refused is allowed"
    for place, (_, if_true, if_false, _) in enumerate(program[:-1]):
        assert place + 1 + max(if_true, if_false) < len(program)
        assert max(if_true, if_false) < 256


async def test_its_limits_hold(tmp_path: Path) -> None:
    async with host_supervisor(written(tmp_path, rule("return Verdict()"))) as host:
        limits = {
            what: resource.prlimit(host.pid, what)
            for what in (
                resource.RLIMIT_NOFILE,
                resource.RLIMIT_FSIZE,
                resource.RLIMIT_CORE,
                resource.RLIMIT_AS,
            )
        }
        size = int(Path(f"/proc/{host.pid}/statm").read_text().split()[0]) * resource.getpagesize()
    assert limits[resource.RLIMIT_NOFILE] == (32, 32)
    assert limits[resource.RLIMIT_FSIZE] == (2**24, 2**24)
    assert limits[resource.RLIMIT_CORE] == (0, 0)
    assert size < limits[resource.RLIMIT_AS][0] < size + 2**29 + 2**24


async def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    revision = written(tmp_path, rule("sum(range(10**13))"))
    code = f"""
import asyncio, os, signal
from pulse_adapters.workers.run_as import RunAs
from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_core.ports.engine import Revision
from tests.integration.rule_host.rule_host_engines import at, history_of
async def main():
    host = await ChildHosts().start(Revision("c", {revision.path!r}), at(1), history_of(()), {{}})
    asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGKILL)
    print(host.pid, flush=True)
    await host.fold(at(1), at(2))
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done
    handle = -1
    try:
        handle = os.pidfd_open(int(done.stdout))
    except ProcessLookupError:
        return
    assert select.select([handle], [], [], 60)[0], "it outlived its parent"
    os.close(handle)
