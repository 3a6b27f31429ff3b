"""The daemon's process: `python -m upulse_cli.serve`. Plain arguments, so that no command line stays in memory."""

if __name__ == "__main__":
    import gc

    from upulse_cli.blocked_imports import block_in_daemon

    block_in_daemon()  # before whatever would import what it keeps out

    gc.disable()  # nearly all that is imported stays: `sweep_seldom` begins to look for garbage

import asyncio
import errno
import faulthandler
import gc
import logging
import os
import resource
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pulse_adapters.config.home import Home, refuse_strangers
from pulse_adapters.host.allocator import keep_little_free
from pulse_adapters.host.clock import SystemClock
from pulse_adapters.host.daemon_loop import daemon_loop
from pulse_adapters.host.queued_handler import DescriptorHandler, QueuedHandler
from pulse_adapters.ipc.daemon_failure import record_failure
from pulse_adapters.ipc.daemon_process import demand_free
from pulse_adapters.ipc.lock import PATIENCE, HomeLock, LockUnusable, own_pid
from pulse_adapters.objects.files import FileObjects
from pulse_adapters.sqlite.open_log import Opening
from pulse_adapters.sqlite.reserve import make_room
from pulse_adapters.systemd.notify import is_journal
from pulse_adapters.workers.control_group import leave_life
from pulse_adapters.workers.descriptor_share import SPARE
from pulse_adapters.workers.orphan_reaper import leave_first_process
from pulse_adapters.workers.priority import take_priority
from pulse_adapters.workers.proc import refuse_foreign_numbers
from pulse_adapters.workers.process_threads import PROCESS_THREADS, START_THREADS
from pulse_adapters.workers.threads import Pool
from pulse_core import __version__
from pulse_core.actions import BUILT_IN
from pulse_core.model.errors import HomeBusy, NoHome, PulseError, describe_error
from pulse_core.model.event import Draft
from pulse_core.model.home_status import left_running
from pulse_core.model.kinds import CORE_KINDS, ErrorReported
from pulse_core.model.payload import build_models
from pulse_core.model.text import clean
from upulse_cli.views.narrator import Human, JournalLines, JsonLines
from upulse_cli.wiring.daemon import real_daemon

LOG = logging.getLogger("pulse.daemon")
SWEEP = (10_000, 20, 20)
"""Objects made before the youngest are looked at, and how often before the older ones are."""

UNDER_SYSTEMD = 5.0
"""Seconds between two starts that fail, under systemd."""

THREADS = 6
"""Threads for what may take a while; asyncio itself would have four, and one for each core."""

LEAST_FILES = 64
"""Open files without which it can't keep watch over what it starts: with fewer it half ran, and started nothing."""

LAST_MOMENT = 2.5
"""Seconds that the end may take once all is done: more than the last words need."""


def main() -> int:
    """Run the daemon of a home until a signal ends it; the exit code."""
    begin_anew()
    leave_first_process()
    take_priority()
    options = arguments()
    try:
        home = Home.resolve(options.home)
    except PulseError as error:
        sys.exit(clean(error))
    if options.background:
        leave_life(home.path)
    speak(where_it_lies(home).daemon_log if options.background else None)
    faulthandler.enable()
    if few := demand_files():
        return refused(few)
    keep_little_free()
    try:
        with asyncio.Runner(loop_factory=daemon_loop) as runner:
            runner.run(live(home, options))
    except (PulseError, OSError) as error:
        return refused(why_it_gave_up(error, home.path))
    except BaseExceptionGroup as group:
        if not group.split(PulseError)[1]:
            return refused(why_it_gave_up(group, home.path))
        LOG.critical("the daemon failed", exc_info=group)
        patience()
        return 70
    except BaseException:
        # The loop is broken off, and threads of stores that nobody has closed would keep this process.
        end_soon(70)
        raise
    return 0


def speak(file: Path | None = None) -> None:
    """Set up logging: into `file` (rotated at 5 MiB) in JSON lines, or to stderr: for people if it is a terminal,
    with severities if it is the journal, else in JSON lines.

    To stderr, too, if the file can't be written.
    """
    stderr = sys.stderr.fileno()
    handler: logging.Handler = DescriptorHandler(stderr, stderr_formatter(stderr))
    fault = ""
    if file:
        # Half a MiB, where nothing else logs into files.
        from pulse_adapters.host.daemon_log_file import PrivateFileHandler

        try:
            handler = PrivateFileHandler(file, JsonLines())
        except OSError as error:
            fault = (
                f"{file} can't be written ({error.strerror}); what the daemon says goes to its standard error"
            )
    root = logging.getLogger("pulse")
    root.handlers = [QueuedHandler(handler)]
    root.setLevel(logging.INFO)
    root.propagate = False
    if fault:
        root.warning("%s", fault)


def stderr_formatter(descriptor: int) -> logging.Formatter:
    """The form that suits who reads this descriptor: a person, the journal, or a program."""
    if os.isatty(descriptor):
        return Human(True)
    return JournalLines() if is_journal(descriptor, os.environ) else JsonLines()


def begin_anew() -> None:
    """Undo what whoever starts this may have left: blocked signals, which could not end it, and closed standard streams."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(null, "w" if number else "r"))


def demand_files() -> str:
    """Have room for enough open files, as far as the hard limit allows; why that is too little, in words, or nothing.

    No more than that: whatever it starts inherits the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= LEAST_FILES or soft == resource.RLIM_INFINITY:
        return ""
    if hard != resource.RLIM_INFINITY and hard < LEAST_FILES:
        return f"a limit of {hard} open files is too small, it needs {LEAST_FILES}; allow it more (ulimit -n, LimitNOFILE=)"
    resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_FILES, hard))
    return ""


def sweep_seldom() -> None:
    """What is imported and restored stays: the garbage collector need not look at it, nor stop the loops for little things.

    Until then it rests: folding a log leaves no garbage, and looking for some took a twentieth of a long start.
    """
    gc.freeze()
    gc.set_threshold(*SWEEP)
    gc.enable()


def refused(words: str) -> int:
    """Say why there is no daemon."""
    LOG.error("%s", words)
    patience()
    return 1


def why_it_gave_up(error: BaseException, home: Path) -> str:
    """Why there is no daemon, in words."""
    if isinstance(error, BaseExceptionGroup):
        expected, bugs = error.split(PulseError)
        if expected is not None and bugs is None:
            return "; ".join(str(one) for one in leaves(expected))
    if isinstance(error, PulseError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or home}: {error.strerror or error}"
    return f"it failed, see upulse daemon logs: {describe_error(error)}"


def patience() -> None:
    """Under systemd, wait before a start that failed ends: it is tried again at once, for ever."""
    if os.environ.get("INVOCATION_ID"):
        time.sleep(UNDER_SYSTEMD)


def leaves(group: BaseExceptionGroup[PulseError]) -> Iterator[PulseError]:
    """The errors in a group, however deep."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


class Options(NamedTuple):
    """What the command line says. background: log into the home; accept_damage: set damaged stores aside and go on."""

    home: str
    background: bool
    accept_damage: bool


def arguments() -> Options:
    """What the command line or the unit file says; read by hand, since argparse would stay with the daemon: 0.6 MiB."""
    words = sys.argv[1:]
    place = words.index("--home") if "--home" in words[:-1] else len(words)
    flags = {*words[:place], *words[place + 2 :]}
    if place == len(words) or not flags <= {"--background", "--accept-damage"}:
        print("usage: upulse_cli.serve --home HOME [--background] [--accept-damage]", file=sys.stderr)
        sys.exit(2)
    return Options(words[place + 1], "--background" in flags, "--accept-damage" in flags)


def where_it_lies(home: Home) -> Home:
    """The home by a path without links."""
    return Home(Path(os.path.realpath(home.path)))


async def live(home: Home, options: Options) -> None:
    """Take the home, run, and give it back."""
    if not home.exists():
        raise NoHome(str(home.path))
    refuse_strangers(home)
    refuse_foreign_numbers()
    if mended := home.close_to_others():
        LOG.warning("%s", mended)
    home = where_it_lies(home)  # a link that led here may be gone before this ends
    asyncio.get_running_loop().set_default_executor(Pool(THREADS, "files", begun=True))
    PROCESS_THREADS.begin()
    START_THREADS.begin()
    SPARE.hold()
    failure = record_failure(home.failure, partial(why_it_gave_up, home=home.path))
    with taken(home) as lock, failure, own_pid(home.pid):
        how = Opening()
        news: tuple[Draft, ...] = ()
        if options.accept_damage:
            from pulse_adapters.sqlite.damage import (
                accept_damage,  # nearly never needed, as what puts a log back
            )

            how, news = await accept_damage(home, how, SystemClock(), FileObjects(home.objects))
        elif home.saved_log.exists():
            from pulse_adapters.sqlite.backup.saved_log import is_all_saved, put_back, set_empty_aside

            # Where nobody has put another log, survival doesn't wait for a person.
            words = set_empty_aside(home)
            if not words and (not home.events.exists() or is_all_saved(home)):
                how_it_was = "deleted, cut or altered under the last daemon, which saved its rows"
                words = f"the log was {how_it_was}: {put_back(home)}"
            if words:
                LOG.warning("%s", words)
                news = (Draft(ErrorReported(message=words), "log"),)
        build_models((*CORE_KINDS, *(action.params for action in BUILT_IN)))
        async with real_daemon(home, how, news, lock) as daemon:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, stop.set)
            for number in (signal.SIGINT, signal.SIGQUIT):
                # Ignored is what a shell without job control hands to what stands before an `&`: its Ctrl-C is meant
                # for others in the same terminal.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    loop.add_signal_handler(number, stop.set)
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
                loop.add_signal_handler(number, LOG.warning, "%s means nothing here", number.name)
            loop.add_signal_handler(signal.SIGHUP, daemon.request_reload)
            if options.background or not os.isatty(sys.stderr.fileno()):
                await daemon.run(stop, sweep_seldom)
            else:
                await daemon.run(stop, sweep_seldom, partial(say_ready, home))
                LOG.info("%s", left_running(daemon.report()))
    end_soon()


def say_ready(home: Home) -> None:
    """Tell who watches that it runs, and what to try in another terminal."""
    command = Path(sys.executable).with_name("upulse")
    LOG.info("ready, now try in another terminal: %s status --home %s", command, shlex.quote(str(home.path)))


def end_soon(code: int = 0) -> None:
    """All is done: a thread that still waits for a file system that does not answer shall not keep this process."""
    last = threading.Timer(LAST_MOMENT, os._exit, (code,))
    last.daemon = True
    last.start()


@contextmanager
def taken(home: Home) -> Iterator[HomeLock]:
    """The home's lock; on a full disk room is made for it first. A command that holds it is waited for."""
    lock = HomeLock(home.lock, __version__, wait=PATIENCE, may_be_read_only=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock)
        except HomeBusy:
            demand_free(home)
            stack.enter_context(lock)
        except LockUnusable as error:
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in (
                errno.ENOSPC,
                errno.EDQUOT,
            ):
                raise
            make_room(home)
            stack.enter_context(lock)
        yield lock


if __name__ == "__main__":
    sys.exit(main())
