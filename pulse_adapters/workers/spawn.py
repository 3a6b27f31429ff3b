"""Starts a program in a session of its own, with default signals and no descriptors but those it is given."""

import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path, PurePath
from typing import NamedTuple

from pulse_adapters.workers.drop_privileges import become_unwaited
from pulse_adapters.workers.plain_file import open_plain
from pulse_adapters.workers.posix_spawn import posix_spawn
from pulse_adapters.workers.priority import give_up_priority


class ProcessUser(NamedTuple):
    """Whom a new process runs as, if not as this one: with all groups that a login of that user has."""

    name: str
    home: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @property
    def environment(self) -> Mapping[str, str]:
        """What says so to programs."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


class ProcessAttributes(NamedTuple):
    """What a new process gets beside its user, if not what this one has: a group, a umask, a priority, and limits.

    limits: soft and hard alike, by the numbers that `resource` has for them.
    """

    gid: int | None = None
    umask: int | None = None
    nice: int | None = None
    limits: Mapping[int, int] = {}


TRACED_S = 0.1
"""Seconds between two looks at a child that is dead and can't be reaped, since a tracer (gdb, strace) holds it."""
_INTERPRETERS = 5
"""How many scripts may interpret each other; the kernel allows no more."""
_LINKS = 40
"""How many links may lead to a program; the kernel follows no more."""
_RESET = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


def spawn(
    program: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    descriptors: Mapping[int, int],
    *,
    cwd: str | None = None,
    blocked: Sequence[signal.Signals] = (),
    user: ProcessUser | None = None,
    attributes: ProcessAttributes | None = None,
    group: int | None = None,
) -> int:
    """The pid of a new process, which must be waited for. Raises OSError or ValueError.

    descriptors: ours by the number that it has there; of the standard three, those that are not named lead nowhere. Ours
    must be larger than every number there. blocked: signals that are blocked until the program unblocks them. group: a
    descriptor of the control group that it is born in, where `can_spawn_in_group`; without user and attributes.

    An ignored signal stays ignored across exec: whoever starts the daemon by `nohup … &` has SIGINT ignored in all that
    comes out of it. So every disposition is set to its default, and the mask is emptied.

    Whoever starts a program waits until it is executed, which is long on a busy machine: the loop has threads for it.
    posix_spawn takes half as long as Popen, but knows of no user, and of no attributes.
    """
    close_at_exec()
    descriptors = {**{number: nowhere() for number in range(3) if number not in descriptors}, **descriptors}
    if cwd is not None:
        _try_to_enter(cwd)  # what is said where the start fails says not what is wrong
    if user is not None or attributes is not None:
        return _opened(program, argv, env, descriptors, cwd, user, attributes)
    pid = posix_spawn(program, argv, env, descriptors, cwd=cwd, group=group, blocked=blocked, defaults=_RESET)
    give_up_priority(pid)
    return pid


def find_program(program: str, env: Mapping[str, str]) -> str:
    """The program's path, looked for in the PATH that it will have. Raises FileNotFoundError."""
    if "/" in program:
        return program
    if found := shutil.which(program, path=env.get("PATH", os.defpath)):
        return found
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


class ReachedProgram(NamedTuple):
    """The path of a program, and whether somebody else may change what lies there, or hold it, at any moment."""

    path: str
    is_of_others: bool


def reach_program(
    program: str,
    env: Mapping[str, str],
    cwd: str | None,
    is_sure: bool = False,
    user: ProcessUser | None = None,
) -> ReachedProgram:
    """The program, after a look at all that the kernel looks at to execute it there. Raises FileNotFoundError.

    is_sure: raises OSError, too, if it is not there, is no program, or may not be executed by `user`, or this process
    without one; so it is asked of what is of others, since whoever executes that for us can only exit.

    Whoever spawns holds up this whole process until the kernel is done: so this is asked in a thread first, since a file
    system may not answer. What the kernel would refuse, it shall say itself.
    """
    found = find_program(program, env)
    if cwd is not None:
        os.access(cwd, os.X_OK)
    path = os.path.join(cwd or "", found)
    executed = list(_executed_files(path))
    is_of_others = any(others_decide(one) for one, _ in executed)
    if is_sure or is_of_others:
        for one, head in executed:
            may = stat.S_ISREG(os.stat(one).st_mode) and os.access(one, os.X_OK)
            if not may or (user and not (may_reach(user, one) and may_reach(user, os.path.realpath(one)))):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), one)
            if head is not None and not head.startswith(b"#!") and _is_text(head) and not _other_formats():
                raise OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC), one)
    return ReachedProgram(found, is_of_others)


def may_reach(user: ProcessUser, path: str) -> bool:
    """Whether a user may execute this, or enter it, and enter all that it lies in: where an access list decides, yes."""
    places = Path(path).absolute()
    return all(_may_execute(user, str(one)) for one in (places, *places.parents))


def _may_execute(user: ProcessUser, path: str) -> bool:
    found = os.stat(path)
    if found.st_uid != user.uid:
        with suppress(OSError):  # it has no access list
            return bool(os.getxattr(path, "system.posix_acl_access"))
        return bool(found.st_mode & (stat.S_IXGRP if found.st_gid in user.groups else stat.S_IXOTH))
    return bool(found.st_mode & stat.S_IXUSR)


def _executed_files(path: str) -> Iterator[tuple[str, bytes | None]]:
    """The program, and whoever interprets it, each with its first bytes, or None if they can't be read."""
    for _ in range(_INTERPRETERS):
        head = _first_bytes(path)
        yield path, head
        if not (head and head.startswith(b"#!") and (words := head[2:].split(b"\n")[0].split())):
            return
        path = os.fsdecode(words[0])


def _first_bytes(path: str) -> bytes | None:
    try:
        file = open_plain(path, follow=True)
    except OSError:
        return None
    try:
        return os.read(file, 256)
    except OSError:
        return None
    finally:
        os.close(file)


def _is_text(head: bytes) -> bool:
    """Whether a file that begins so is empty or text, which of itself is no program: a shell would interpret it."""
    return b"\0" not in head


def _other_formats() -> bool:
    """Whether this machine executes more than the kernel's own formats, as far as can be seen here."""
    with suppress(OSError):
        return not {"register", "status"}.issuperset(os.listdir("/proc/sys/fs/binfmt_misc"))
    return False


def others_decide(path: str, links: int = _LINKS) -> bool:
    """Whether not only root and this user decide what lies there: of each folder above it, each link to it, and itself."""
    for place in map(str, (*reversed(PurePath(path).parents), path)):
        try:
            found = os.lstat(place)
            to = os.readlink(place) if stat.S_ISLNK(found.st_mode) else ""
        except OSError:  # those above are not of others, so nobody else puts anything there
            return False
        writes = stat.S_IWOTH | (0 if found.st_gid in (0, os.getegid()) else stat.S_IWGRP)
        if found.st_uid not in (0, os.geteuid()):
            return True
        if to and (not links or others_decide(os.path.join(os.path.dirname(place), to), links - 1)):
            return True
        if not to and found.st_mode & writes and not found.st_mode & stat.S_ISVTX:
            return True
    return False


@cache
def nowhere() -> int:
    """The null device, opened once: whatever becomes of /dev meanwhile, programs can be started. Raises OSError."""
    try:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:  # of its own number, or the program would be said to be missing
        raise OSError(errno.ENODEV, f"{os.devnull} cannot be opened ({error.strerror})", "") from error


@cache
def close_at_exec() -> None:
    """Have what this process inherited beyond the standard three closed in what it starts; once is enough.

    What Python opens is closed at exec by itself.
    """
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the directory's own descriptor is gone by now
            if int(name) > 2:
                os.set_inheritable(int(name), False)


def _try_to_enter(cwd: str) -> None:
    """Raises OSError, which names it, if it is no directory."""
    if not stat.S_ISDIR(os.stat(cwd).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), cwd)


def _opened(
    program: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    descriptors: Mapping[int, int],
    cwd: str | None,
    user: ProcessUser | None,
    attributes: ProcessAttributes | None,
) -> int:
    """The same by Popen, with no other descriptors than the standard three."""
    stdin, stdout, stderr = (descriptors[number] for number in range(3))
    try:
        process = subprocess.Popen(
            list(argv), executable=program, env=env, stdin=stdin, stdout=stdout, stderr=stderr,
            start_new_session=True, preexec_fn=partial(_become, user, attributes or ProcessAttributes(), cwd),
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        if attributes:
            words = "the kernel refuses its user, group, nice, limits or working directory"
            raise PermissionError(errno.EPERM, words, "") from error
        raise PermissionError(errno.EACCES, f"not by {user and user.name}", cwd) from error
    # We wait by pidfd, and the process may outlive us: subprocess must neither wait nor complain.
    process.returncode = 0
    return process.pid


def _become(user: ProcessUser | None, attributes: ProcessAttributes, cwd: str | None) -> None:
    """Take on what a new process is given, in itself: first what only root can, and the working directory as the user.

    By a link in the place of that, the user would get into folders of root's. What Python itself ignores, Popen sees to.
    """
    for ignored in (number for number in _RESET if signal.getsignal(number) is signal.SIG_IGN):
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number, bound in attributes.limits.items():
        resource.setrlimit(number, (bound, bound))
    if attributes.nice is not None:
        os.setpriority(os.PRIO_PROCESS, 0, attributes.nice)
    if attributes.umask is not None:
        os.umask(attributes.umask)
    if user:
        os.setgroups(user.groups)
    if (gid := user.gid if user and attributes.gid is None else attributes.gid) is not None:
        os.setgid(gid)
    if user:
        os.seteuid(user.uid)
    if cwd is not None:
        os.chdir(cwd)
    if user:
        os.seteuid(os.getuid())
        become_unwaited(user.uid)
