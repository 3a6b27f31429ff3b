"""A real systemd as PID 1 of its own namespaces: what it does stays in an overlay that vanishes with it."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pulse_adapters.workers.proc import command_line
from tests import processes
from tests.processes import child_of_test, pauses

T = TypeVar("T")
INIT = "/lib/systemd/systemd"

BOOT = Path(__file__).resolve().with_name("boot.sh")
CHECKOUT = BOOT.parents[3]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = ("--pid", "--fork", "--mount", "--uts", "--ipc", "--net", "--cgroup")
NEEDED = ("unshare", "nsenter", "setpriv", "pivot_root", "mount", "systemctl", "journalctl")
ENVIRONMENT = (f"PATH={PATH}", "HOME=/root", "LANG=C.UTF-8")


class Machine:
    """The machine inside: paths in it are its own; the checkout and this interpreter are where they are here."""

    def __init__(self) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="pulse-machine-"))
        self.cgroup = self.state.name
        self.log = (self.state.parent / f"{self.cgroup}.log").open("w+")
        # With pdeathsig nothing outlives a test run that is itself killed.
        self.unshare = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private",
             "sh", BOOT, "outside", self.state, self.cgroup, *hidden()],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            env={"PATH": PATH},
        )  # fmt: skip
        try:
            self.pid = eventually(self._init, "an init process")
            eventually(self._is_up, "systemd to be up", self.words)
            self._take_user_numbers()
        except BaseException:
            self.close()
            raise

    def run(
        self, argv: Sequence[str | Path], *, check: bool = True, timeout: float = 60, cwd: str = "/"
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside and give back its output; a failure says all it printed, unless check=False."""
        inside = ["nsenter", f"--target={self.pid}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup",
                  "--root", "--wd=/", "env", "-i", "-C", cwd, *ENVIRONMENT, *map(str, argv)]  # fmt: skip
        with child_of_test(subprocess.Popen(
            inside, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )) as process:  # fmt: skip
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if check and process.returncode:
            words = shlex.join(map(str, argv))
            raise AssertionError(f"{words}: exit {process.returncode}\n{out}{err}{self.words()}")
        return subprocess.CompletedProcess(list(argv), process.returncode, out, err)

    def _take_user_numbers(self) -> None:
        """Leave none to users that are made inside which tests outside give, too.

        Processes are the kernel's: each would end those of the other, and take them for its own.
        """
        for file, rest in (("passwd", ":$id::/:/usr/sbin/nologin"), ("group", ":")):
            words = f'for id in $(seq 900 999); do echo "of-others-$id:x:$id{rest}"; done >> /etc/{file}'
            self.run(["sh", "-c", words])

    def systemctl(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """systemctl inside."""
        return self.run(["systemctl", "--no-pager", *args], check=check)

    def show(self, unit: str, prop: str) -> str:
        """One property of a unit, as `MainPID`."""
        return self.systemctl("show", "--value", "-p", prop, unit).stdout.strip()

    def journal(self, unit: str) -> str:
        """What a unit, and systemd about it, has said so far."""
        return self.run(["journalctl", "--no-pager", "-o", "short-monotonic", "-u", unit]).stdout

    def write(self, path: str, text: str) -> None:
        """Write a file inside, with the directories it needs."""
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def path(self, path: str) -> Path:
        """Where a path of the inside is found from outside, for reading and writing."""
        return Path(f"/proc/{self.pid}/root") / path.lstrip("/")

    def socket(self, path: str) -> Path:
        """Where a socket of the inside, or a link to one, is found from outside."""
        there = self.path(path)
        return self.path(os.readlink(there)) if there.is_symlink() else there

    def words(self) -> str:
        """What the machine said last, for the message of a failure."""
        self.log.flush()
        log = Path(self.log.name).read_text()
        if not hasattr(self, "pid"):
            return f"\n--- boot\n{log}"
        journal = self.run(["journalctl", "--no-pager", "-n", "60"], check=False).stdout
        return f"\n--- boot\n{log}\n--- journal\n{journal}"

    def close(self) -> None:
        """End the machine with all that runs in it; its mounts vanish with its namespaces."""
        self.unshare.kill()  # --kill-child takes its init along, and the kernel the rest of the PID namespace
        self.unshare.wait(timeout=60)
        subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", BOOT, "remove", self.state, self.cgroup],
            env={"PATH": PATH},
            check=True,
            timeout=60,
        )
        self.state.rmdir()
        self.log.close()
        Path(self.log.name).unlink()

    def _init(self) -> int | None:
        if self.unshare.poll() is not None:
            raise AssertionError(f"the machine did not boot:{self.words()}")
        children = processes.children(self.unshare.pid, INIT)
        return next((pid for pid in children if command_line(pid)[0:1] == [INIT]), None)

    def _is_up(self) -> bool:
        return self.systemctl("is-active", "machine.target", check=False).returncode == 0


def eventually(
    look: Callable[[], T | None], what: str, words: Callable[[], str] = str, within: float = 60
) -> T:
    """What `look` sees once it sees something; looks again until then, and fails after `within` seconds."""
    deadline, pause = time.monotonic() + within, pauses()
    while not (seen := look()):
        assert time.monotonic() < deadline, f"waited {within} s in vain for {what}{words()}"
        time.sleep(next(pause))
    return seen


def impossible() -> str | None:
    """Why no machine can be booted here, or None."""
    if os.geteuid() != 0:
        return "booting a systemd of its own needs root"
    if missing := [tool for tool in NEEDED if shutil.which(tool, path=PATH) is None]:
        return f"not installed: {', '.join(missing)}"
    probe = ["unshare", *NAMESPACES, "mount", "-t", "tmpfs", "probe", "/mnt"]
    probed = subprocess.run(
        probe, env={"PATH": PATH}, capture_output=True, text=True, check=False, timeout=60
    )
    return f"no namespaces of its own: {probed.stderr.strip()}" if probed.returncode else None


def hidden() -> list[Path]:
    """What the tests need inside and an overlay of / would not show there."""
    needed = {CHECKOUT, Path(sys.prefix), Path(sys.base_prefix)}
    return sorted(path for path in needed if is_hidden(path))


def is_hidden(path: Path) -> bool:
    covered = any(path.is_relative_to(place) for place in ("/tmp", "/run", "/dev"))
    return covered or path.stat().st_dev != Path("/").stat().st_dev
