"""A disk that fills up, or turns read-only, under a real daemon, with deaths and a storm of log lines meanwhile.

Every death is answered, what the status says of a process is true, and nothing that was acknowledged is lost.
`python -m tests.campaign.bad_disk SECONDS` is the long form.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.verify import verify
from pulse_core.model.errors import LogUnavailable
from pulse_core.ports.readers import EventQuery
from tests import processes
from tests.acceptance.conftest import Served

NAMES = ("one", "two", "three")
SOURCES = 250
ANSWERED_WITHIN = 10.0


class NoSuchDisk(Exception):
    """This machine can't make such a disk."""


def _run(*argv: str | Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise NoSuchDisk(f"{argv[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


class FullDisk:
    """A tmpfs of 16 MiB without a byte to spare."""

    def __init__(self, place: Path) -> None:
        self.path = place / "disk"
        self.path.mkdir()
        _run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", self.path)

    def spoil(self) -> None:
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        ballast.write(bytes(size))

    def mend(self) -> None:
        (self.path / "ballast").unlink()

    def close(self) -> None:
        _run("umount", "--lazy", self.path)


class LoopDisk:
    """An ext4 on a loop device."""

    def __init__(self, place: Path) -> None:
        self.path, image = place / "disk", place / "image"
        self.path.mkdir()
        with image.open("wb") as file:
            file.truncate(64 << 20)
        _run("mkfs.ext4", "-q", image)
        _run("mount", "-o", "loop,errors=remount-ro", image, self.path)

    def close(self) -> None:
        _run("umount", "--lazy", self.path)


class HangingDisk(LoopDisk):
    """One on which whoever writes waits until it is mended."""

    def spoil(self) -> None:
        _run("fsfreeze", "--freeze", self.path)

    def mend(self) -> None:
        _run("fsfreeze", "--unfreeze", self.path)

    def close(self) -> None:
        with suppress(NoSuchDisk):  # it does not hang
            self.mend()
        super().close()


class ReadOnlyDisk(LoopDisk):
    """One that finds an error in itself and lets nobody write any more."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        device = Path(_run("findmnt", "-n", "-o", "SOURCE", self.path)).name
        self.trigger = Path("/sys/fs/ext4", device, "trigger_fs_error")
        if not self.trigger.exists():
            self.close()
            raise NoSuchDisk("this ext4 has no trigger_fs_error")

    def spoil(self) -> None:
        self.trigger.write_text("1")

    def mend(self) -> None:
        """Nothing writes to it again before it is checked."""


Disk = FullDisk | ReadOnlyDisk
DISKS: Mapping[str, Callable[[Path], Disk]] = {"full": FullDisk, "read-only": ReadOnlyDisk}


def settings(logs: Path) -> str:
    """Three processes, and logs of which every line counts."""
    guarded = "".join(
        f'[[process]]\nname = "{name}"\nstart = ["sleep", "{9020 + number}"]\n'
        'restart = { max = 1000, backoff = "0s", healthy_after = "0s", grace = "1s" }\n'
        for number, name in enumerate(NAMES)
    )
    return f'{guarded}[[log]]\npath = "{logs}/*.log"\nkeywords = ["ERROR"]\nlines_per_minute = 100000\n'


@contextmanager
def daemon_on(kind: str, place: Path) -> Iterator[tuple[Served, Disk]]:
    """A daemon whose home lies on such a disk; raises NoSuchDisk."""
    disk = DISKS[kind](place)
    served = Served(disk.path / "home")
    served.said = place / "said"
    try:
        yield served, disk
    finally:
        served.close()
        disk.close()


def campaign(kind: str, place: Path, seconds: float, seed: int = 0) -> Counter[str]:
    """Live through it for so long; what was seen. Raises AssertionError where a promise was broken."""
    dice, seen, logs = Random(seed), Counter[str](), place / "logs"
    logs.mkdir()
    for number in range(SOURCES):
        (logs / f"{number}.log").touch()
    with daemon_on(kind, place) as (served, disk):
        served.configure(settings(logs))
        served.start()
        for name in NAMES:
            served.pid_when_up(name)
        served.eventually(lambda: "error-log" in served.status()["vitals"], "the logs are followed")
        acknowledged = [served.append("resumed")["id"] for _ in range(10)]
        disk.spoil()
        with suppress(LogUnavailable):  # until the reserve is gone, and what SQLite had room for
            for _ in range(100):
                acknowledged.append(served.append("resumed", why="x" * 1900)["id"])
                if kind == "full":
                    disk.spoil()
        until = time.monotonic() + seconds
        while time.monotonic() < until or (kind == "full" and not seen["left out"]):
            assert time.monotonic() < until + 60, f"{dict(seen)}: that is no storm"
            for number in range(SOURCES):
                with (logs / f"{number}.log").open("a") as log:
                    log.write(f"ERROR {dice.randbytes(4).hex()} in round {seen['rounds']}\n")
            if seen["rounds"] % 5 == 0:
                kill_one(served, dice)
                seen["deaths"] += 1
            seen["rounds"] += 1
            stands = served.status()["log"]
            seen["held"], seen["left out"] = stands["unwritten"], stands["left_out"]
            assert stands["unwritten"] <= 1_100, stands
            time.sleep(0.1)
        for name in NAMES:
            kill_one(served, dice, name)
            seen["deaths"] += 1
        disk.mend()
        if kind == "full":
            served.eventually(lambda: not served.status()["log"]["unwritten"], "what was held is recorded")
            assert served.stop() == 0
        else:
            served.kill()
            served.start()  # from what can be read
            before = served.pid_when_up(NAMES[0])
            os.kill(before, signal.SIGKILL)
            served.pid_when_up(NAMES[0], other_than=before)
            served.kill()
        with SqliteEventReader(served.home.path) as log:
            there = {event.id for event in log.events(EventQuery(kinds=("resumed",)))}
        assert there >= {*acknowledged}
        assert verify(served.home.events, served.home.objects).fault == ""
    return seen


def kill_one(served: Served, dice: Random, name: str = "") -> None:
    """Kill one of the processes: another one takes its place, and what the status says of it is what the kernel says."""
    name = name or dice.choice(NAMES)
    number = str(9020 + NAMES.index(name))
    assert served.daemon is not None
    (before,) = processes.children(served.daemon.pid, number)
    os.kill(before, signal.SIGKILL)
    until, now, said = time.monotonic() + ANSWERED_WITHIN, [before], dict[str, object]()
    while time.monotonic() < until:
        now, said = processes.children(served.daemon.pid, number), served.process(name)
        if len(now) == 1 and now[0] != before and (said["state"], said["pid"]) == ("up", now[0]):
            return
        time.sleep(0.01)
    raise AssertionError(f"{name}: the kernel says {now} instead of {before}, the status {said}")


def campaign_of_all(seconds: float) -> bool:
    """So long on each disk that this machine can make; whether every promise was kept."""
    sound = True
    for kind in DISKS:
        with tempfile.TemporaryDirectory(prefix="pulse-campaign-") as place:
            try:
                print(f"disk {kind}: {dict(campaign(kind, Path(place), seconds))}", flush=True)
            except NoSuchDisk as error:
                print(f"disk {kind}: left out ({error})", flush=True)
            except AssertionError as error:
                print(f"disk {kind}: {error}", flush=True)
                sound = False
    return sound


if __name__ == "__main__":
    sys.exit(0 if campaign_of_all(float(sys.argv[1]) if sys.argv[1:] else 600.0) else 1)
