"""Control groups (cgroup2) of a home's own: what is in one can't leave it without rights to it, and ends with it as a whole.

All of a home lie in one folder, `pulse-ID`, below the control group of whoever makes them; nothing else is ever written
or ended. Where a service manager has put the daemon into a leaf of its own (`DelegateSubgroup=daemon`), what is above
belongs to it alone, and controllers are switched on there; elsewhere those are used that are on. The daemon doesn't move
itself: with controllers on, a service manager could put no next daemon beside what an earlier one has left.

Nothing here is for the event loop: to move a process waits for the kernel, up to 50 ms.
"""

import hashlib
import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pulse_adapters.workers.descriptor_share import SPARE
from pulse_adapters.workers.proc import is_alive, read_proc_file, read_stat, send
from pulse_core.model.errors import PulseError
from pulse_core.model.shortages import SHORTAGES
from pulse_core.ports.host import Life, ProcessId

LEAF = "daemon"
"""The daemon's own group in a unit that is delegated to it."""
DELEGATED = "user.delegate"
"""The attribute by which a service manager shows that a group belongs to the unit alone."""
HOME = "user.pulse.home"
"""The attribute that names the home to which a folder of groups belongs."""
LOG = "user.pulse.log"
"""The attribute that says by `log_identity` of which log a life is, or those in a folder are, wherever its home lies."""
STARTED = "user.pulse.started"
"""The attribute that says which guarded process was started in a group, and as what; that of a run has none."""
LIFE, BESIDE = "life-", "beside-"
"""What the name of a group begins with that a life of a guarded process has, or a daemon that was started in one."""
CONTROLLERS = ("pids", "memory", "cpu")
SHARE = 256
"""Processes and threads that are left to the daemon of those that its unit may have (`TasksMax=`); of few, a quarter."""
AGAIN_S = 0.1
"""Seconds after which who is still in a group is killed again: what one forks whom the kernel has passed over gets away."""
_MOST_NAME, _MOST_GROUPS, _DEEPEST = 200, 20_000, 50


class NoControlGroups(PulseError):
    """There are none for this process, and why not."""


class GroupLimits(NamedTuple):
    """What all members together may have. pids: with threads; memory: bytes; cpu_weight: against 100 of others."""

    pids: int | None = None
    memory: int | None = None
    cpu_weight: int | None = None


UNLIMITED = GroupLimits()


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One group with all that is below it. path: its folder."""

    path: str

    @property
    def name(self) -> str:
        """Its own name."""
        return os.path.basename(self.path)

    def child(self, name: str, limits: GroupLimits = UNLIMITED) -> "ControlGroup":
        """The group of this name within, made if it is not there. Raises OSError."""
        group = ControlGroup(os.path.join(self.path, re.sub(r"[^A-Za-z0-9_-]", "-", name)[:_MOST_NAME]))
        os.makedirs(group.path, exist_ok=True)
        group.limit(limits)
        return group

    def log(self) -> str:
        """The identity of the log whose life, or whose lives, are in it; empty if it says none."""
        with suppress(OSError):
            return os.fsdecode(os.getxattr(self.path, LOG))
        return ""

    def tell_log(self, identity: str) -> None:
        """Have it say so, if there is one."""
        if identity:
            with suppress(OSError):
                os.setxattr(self.path, LOG, identity.encode())

    def started(self) -> tuple[str, Life | None]:
        """The name of the guarded process that was started in it, and as what; empty and None if it says none."""
        words: list[str] = []
        with suppress(OSError):
            words = os.fsdecode(os.getxattr(self.path, STARTED)).split()
        name, pid, started, *settings = *words, *[""] * (3 - len(words))
        first = ProcessId(int(pid), int(started)) if pid.isdecimal() and started.isdecimal() else None
        return name, first and Life(self.name.removeprefix(LIFE), first, "".join(settings))

    def tell_started(self, name: str, life: Life | None = None) -> None:
        """Have it say so from now on, whatever its members do and whether a disk takes anything or not."""
        if name:
            with suppress(OSError):
                words = (name, *life.found, life.settings) if life else (name,)
                os.setxattr(self.path, STARTED, " ".join(map(str, words)).encode())

    def children(self) -> Iterator["ControlGroup"]:
        """The groups directly within; none if it is gone. Raises OSError if this process lacks what it takes to look."""
        try:
            entries = SPARE.read(lambda: list(os.scandir(self.path)))
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            return
        yield from (ControlGroup(one.path) for one in entries if one.is_dir(follow_symlinks=False))

    def whole(self) -> Iterator["ControlGroup"]:
        """It and all groups within, each before those within it; no more than a person would make."""
        ahead = [(self, 0)]
        for _ in range(_MOST_GROUPS):
            if not ahead:
                return
            group, depth = ahead.pop()
            yield group
            if depth < _DEEPEST:
                ahead += [(one, depth + 1) for one in group.children()]

    def limit(self, limits: GroupLimits) -> None:
        """Set these limits, as far as their controllers are there."""
        controls = {"pids.max": limits.pids, "memory.max": limits.memory, "cpu.weight": limits.cpu_weight}
        for file, value in controls.items():
            if value is not None and os.path.exists(os.path.join(self.path, file)):
                self._write(file, str(value))

    def leave_share(self, above: "ControlGroup") -> None:
        """Leave the daemon beside it a share of the processes that the group above may have, whoever forks in here."""
        if (most := above._read("pids.max").strip()).isdecimal():
            self.limit(GroupLimits(pids=int(most) - min(SHARE, int(most) // 4)))

    def controllers(self) -> frozenset[str]:
        """Those of `CONTROLLERS` that limit what is in here."""
        return frozenset(CONTROLLERS) & set(self._read("cgroup.controllers").split())

    def missing_limits(self, above: "ControlGroup") -> str:
        """Why not all limits of this group have an effect, and what to do; empty if they have.

        above: what `parent_of_groups` says.
        """
        if not (lacking := [one for one in CONTROLLERS if one not in self.controllers()]):
            return ""
        if not above.controllers().issuperset(lacking):
            return (
                f"{above.path} has no controller of {', '.join(lacking)}, as on a machine with cgroup v1; boot it with "
                "systemd.unified_cgroup_hierarchy=1"
            )
        return (
            "the daemon is in its unit's group itself, and then the kernel sets no limits below that; run it as a "
            "service under systemd 254 or later"
        )

    def enable_controllers(self) -> None:
        """Give the groups within the controllers that are there; not possible while processes are in this one itself."""
        for one in sorted(self.controllers()):
            with suppress(OSError):
                self._write("cgroup.subtree_control", f"+{one}")

    def add(self, pid: int) -> None:
        """Move a process into it, 0 for the calling one; its children stay where they are. Raises OSError."""
        self._write("cgroup.procs", str(pid))

    def members(self) -> frozenset[int]:
        """The pids of all processes in it; none if it is gone."""
        return frozenset().union(*(group.own_members() for group in self.whole()))

    def own_members(self) -> frozenset[int]:
        """The same without those of the groups within."""
        return frozenset(map(int, self._read("cgroup.procs").split()))

    def is_populated(self) -> bool:
        """Whether a process that is no zombie is in it."""
        return "populated 1" in self._read("cgroup.events")

    def oom_kills(self) -> int:
        """How many processes in it the kernel has killed for want of memory; 0 where it does not count them for it alone."""
        found = re.search(r"^oom_kill (\d+)$", self._read("memory.events"), re.MULTILINE)
        return int(found[1]) if found else 0

    def kill(self) -> None:
        """SIGKILL to all in it at once, and to what they fork meanwhile. Raises OSError, but not for one that is gone.

        The kernel signals the first thread of each: where that has ended, the others would go on.
        """
        try:
            self._write("cgroup.kill", "1")
            for one in filter(None, map(read_stat, self.members())):
                if one.is_led_by_dead:
                    send(one.found, signal.SIGKILL)
        except OSError:
            if os.path.isdir(self.path):
                raise

    def end(self, seconds: float) -> bool:
        """Kill all in it and remove it; whether nothing is left within these seconds. Raises OSError."""
        try:
            self._change(self.kill, "populated 1", seconds)
        except FileNotFoundError:
            return True
        return self.remove()

    def freeze(self, seconds: float) -> None:
        """Have all in it stand still, which only ends by `thaw` or SIGKILL, within these seconds. Raises OSError."""
        self._change(lambda: self._write("cgroup.freeze", "1"), "frozen 0", seconds)

    def thaw(self) -> None:
        """Have all in it go on. Raises OSError."""
        self._write("cgroup.freeze", "0")

    def _change(self, begin: Callable[[], None], word: str, seconds: float) -> None:
        """Begin something, again until its events don't have this word, for up to these seconds. Raises OSError."""
        until = time.monotonic() + seconds
        events = os.open(os.path.join(self.path, "cgroup.events"), os.O_RDONLY | os.O_CLOEXEC)
        try:
            change = select.poll()
            change.register(events, select.POLLPRI)
            begin()
            while word in self._read("cgroup.events") and (left := until - time.monotonic()) > 0:
                if not change.poll(min(left, AGAIN_S) * 1000):
                    begin()
                with suppress(OSError):  # somebody else has removed it
                    os.pread(events, 256, 0)
        finally:
            os.close(events)

    def remove(self) -> bool:
        """Remove it with the groups within, deepest first; whether it is gone. What has members stays."""
        for group in reversed(list(self.whole())):
            with suppress(OSError):
                os.rmdir(group.path)
        return not os.path.isdir(self.path)

    def _read(self, file: str) -> str:
        """What a file of it says; empty if it is gone. Raises OSError if this process lacks what it takes to look."""
        return (read_proc_file(os.path.join(self.path, file)) or b"").decode()

    def _write(self, file: str, value: str) -> None:
        with open(os.path.join(self.path, file), "w") as written:
            written.write(value)


def home_name(home: str | os.PathLike[str]) -> str:
    """What the folder of a home's groups is called; of the home's inode, so that no other home on this kernel has it."""
    known = os.stat(home)
    return "pulse-" + hashlib.sha256(f"{known.st_dev}:{known.st_ino}".encode()).hexdigest()[:16]


def log_identity(log: str) -> str:
    """What the processes of a log are known by: it is moved and copied with its home, and has one daemon per PID namespace.

    log: its UUID.
    """
    return f"{log}.{_pid_namespace()}"


def home_groups(home: str | os.PathLike[str], name: str = "", identity: str = "") -> ControlGroup:
    """The group in which this process may make groups for the home, made if it is not there. Raises NoControlGroups.

    name: what `home_name` said, if the home may have been moved since; identity: of its log, where that is known.
    """
    own = own_group()
    above = parent_of_groups(own)
    # What is moved from a group to another one asks for rights to what is above both.
    if not all(os.access(path, os.W_OK) for path in (above.path, os.path.join(above.path, "cgroup.procs"))):
        raise NoControlGroups(f"this process may not make control groups below {above.path}")
    if above != own:
        above.enable_controllers()
    try:
        group = above.child(name or home_name(home))
    except OSError as error:
        raise NoControlGroups(f"no control group can be made below {above.path}: {error.strerror}") from error
    if not os.path.exists(os.path.join(group.path, "cgroup.kill")):
        group.remove()
        raise NoControlGroups("this kernel can't end a control group; Linux 5.14 and later can")
    if group._read("cgroup.type").strip() != "domain":
        group.remove()
        raise NoControlGroups(f"{above.path} is a control group of threads")
    group.enable_controllers()
    group.leave_share(above)
    with suppress(OSError):
        os.setxattr(group.path, HOME, os.fsencode(os.path.abspath(home)))
    group.tell_log(identity)
    return group


def remove_home_groups(name: str) -> None:
    """Remove the empty groups that this process has made for a home, and the folder of this name, if none is left in it."""
    with suppress(NoControlGroups, OSError):
        _remove_empty(ControlGroup(os.path.join(parent_of_groups(own_group()).path, name)))


def _remove_empty(folder: ControlGroup) -> None:
    """Remove those groups in a folder that nobody is in, and it, if none is left; what is below others is theirs."""
    for one in list(folder.children()):
        if one.name.startswith((LIFE, BESIDE)) and not one.is_populated():
            one.remove()
    with suppress(OSError):  # there are others in it
        os.rmdir(folder.path)


def remove_groups_of_gone_homes() -> None:
    """Remove the folders that this user has made here for homes that are gone, and in whose groups nobody is."""
    with suppress(NoControlGroups, OSError):
        for folder in parent_of_groups(own_group()).children():
            with suppress(OSError):  # it has no home, or is gone
                home = os.fsdecode(os.getxattr(folder.path, HOME))
                is_mine = os.stat(folder.path).st_uid == os.geteuid()
                is_gone = not os.path.isdir(home) or home_name(home) != folder.name
                if is_mine and is_gone and not folder.is_populated():
                    folder.remove()


def leave_life(home: str | os.PathLike[str]) -> None:
    """Move this process, a daemon, out of the life that another home guards, if it was started in one, to beside it.

    It is no part of whoever started it, nor is what it guards. There it has a leaf of its own, as in a delegated unit.
    """
    with suppress(NoControlGroups, OSError):
        own = own_group()
        if found := re.match(rf"(.*?/pulse-[0-9a-f]{{16}})/{LIFE}", own.path + "/"):
            beside = ControlGroup(found[1]).child(BESIDE + home_name(home))
            beside.child(LEAF).add(0)
            os.setxattr(beside.path, DELEGATED, b"1")


def all_home_groups(home: str | os.PathLike[str], identity: str = "") -> list[ControlGroup]:
    """Every folder of this home's groups, also of daemons that ran in another session or unit.

    identity: of its log; then those of all homes that the log was in, too.
    """
    name = home_name(home)
    found: dict[int, ControlGroup] = {}
    places = [ControlGroup(mount).whole() for mount, _ in _mounts()]
    with suppress(NoControlGroups):
        places.insert(
            0, parent_of_groups(own_group()).children()
        )  # the likeliest; whoever nests many can't hide it
    for group in chain.from_iterable(places):
        is_of_log = identity and group.name.startswith("pulse-") and group.log() == identity
        if group.name == name or is_of_log:
            with suppress(FileNotFoundError):
                known = os.stat(group.path)
                if os.geteuid() in (0, known.st_uid):
                    found.setdefault(known.st_ino, group)
    return list(found.values())


def life_members(home: str | os.PathLike[str]) -> dict[int, str]:
    """The processes in the groups of this home's lives, by pid: each with the effect that began its life."""
    found = dict[int, str]()
    with suppress(FileNotFoundError):  # there is no such home
        for group in chain.from_iterable(folder.children() for folder in all_home_groups(home)):
            if group.name.startswith(LIFE):
                found |= dict.fromkeys(group.members(), group.name.removeprefix(LIFE))
    return found


def maker_prefix() -> str:
    """What the name of a group begins with that shall not outlive this process: by that its leftovers are known."""
    own = read_stat(os.getpid())
    return f"of-{_pid_namespace()}-{os.getpid()}-{own.started if own else 0}-"


def is_left_over(group: ControlGroup) -> bool:
    """Whether it was made by a process, as `maker_prefix` says, that is gone; a container's are not ours to judge."""
    made = re.match(r"of-(\d+)-(\d+)-(\d+)-", group.name)
    if made is None or int(made[1]) != _pid_namespace():
        return False
    return not is_alive(ProcessId(int(made[2]), int(made[3])))


def end_left_over(home: str | os.PathLike[str], seconds: float) -> list[str]:
    """End all of a home's groups whose maker is gone; the paths of those that can't be ended. Raises OSError."""
    left = []
    for folder in all_home_groups(home):
        left += [one.path for one in folder.children() if is_left_over(one) and not one.end(seconds)]
        _remove_empty(folder)
    return left


def own_group() -> ControlGroup:
    """The group that this process is in. Raises NoControlGroups."""
    with open("/proc/self/cgroup", errors="surrogateescape") as told:
        own = next((line[3:].rstrip("\n") for line in told if line.startswith("0::")), None)
    for mount, root in _mounts() if own else ():
        assert own is not None
        below = os.path.relpath(own, root)
        path = os.path.normpath(os.path.join(mount, below))
        if not below.startswith("..") and os.path.exists(os.path.join(path, "cgroup.procs")):
            return ControlGroup(path)
    raise NoControlGroups("this machine shows no control groups (cgroup2 is not mounted)")


def parent_of_groups(own: ControlGroup) -> ControlGroup:
    """Where a process in this group makes groups: beside a leaf of a delegated unit, else below its own."""
    parent = ControlGroup(os.path.dirname(own.path))
    if own.name == LEAF and re.fullmatch(r"upulse(@.+)?\.service", parent.name):
        return parent  # a person's service manager sets no attribute on its units
    with suppress(OSError):
        if own.name == LEAF and os.getxattr(parent.path, DELEGATED) == b"1":
            return parent
    return own


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _mounts() -> Iterator[tuple[str, str]]:
    """Where control groups are mounted, and the group that is to be seen there."""
    with open("/proc/self/mountinfo", errors="surrogateescape") as told:  # of any mount, in any bytes
        for line in told:
            fields, _, kind = line.partition(" - ")
            if kind.startswith("cgroup2 "):
                root, mount = fields.split()[3:5]
                yield _unescape(mount), _unescape(root)


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
