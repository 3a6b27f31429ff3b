"""What every test may rely on, whatever the shell, the `nohup` or the CI that started the run hands down."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from functools import cache
from types import FrameType

import hypothesis
import pytest
import typer.main

from pulse_adapters.action_host import proxies
from pulse_adapters.ipc import daemon_client
from pulse_adapters.workers import file_systems
from tests.control_groups import group_of_run
from tests.engine_user import python_for_all
from tests.long_form import is_sampled

OUTER = ("GIT_", "LISTEN_", "MAKE", "MFLAGS", "NOTIFY_SOCKET", "PYTHON", "UPULSE_", "WATCHDOG_")
"""Beginnings of variables that steer git, make, Python, systemd's services or Pulse itself."""

ROOT = "only root can do that; to have it tested: sudo make test, in a clone that is root's own"
ORDINARY = "root may do that; to have it tested: make test as an ordinary user, in a clone of its own"


def ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing. What is exec'd begins with the default again, which an ignored signal would not."""


def forget_what_was_inherited() -> None:
    """Take back ignored and blocked signals, the umask and the environment of whoever started the run.

    A shell without job control starts what stands before an `&` with SIGINT and SIGQUIT ignored, and `nohup` ignores
    SIGHUP; children inherit that, and a daemon that Ctrl-C should end would never end. The run itself stays as deaf to
    them as its caller wanted.
    """
    for number in (
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGCHLD,
        signal.SIGUSR1,
        signal.SIGUSR2,
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, ignore)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # asyncio takes Ctrl-C over from this one alone
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
    for name in [name for name in os.environ if name.startswith(OUTER)]:
        del os.environ[name]


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Run all tests in a control group of the run's own."""
    with nullcontext() if os.environ.get("PYTEST_XDIST_WORKER") else group_of_run():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Try again what a neighbour on the same machine can delay, and nothing else; begin with the longest.

    Files with a test that may take longer than others come first, each whole, for the fixtures of its module: the last
    that is begun is what one processor is left alone with.
    """
    usual = float(config.getini("timeout")) if config.pluginmanager.hasplugin("timeout") else 0.0
    longest = {item.path for item in items for mark in item.iter_markers("timeout") if mark.args[0] > usual}
    items.sort(key=lambda item: item.path not in longest)
    for item in items:
        if item.get_closest_marker("wall_clock"):
            item.add_marker(pytest.mark.flaky(reruns=2))


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: they are not searched for garbage again and again."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in a line for each what was not tested here, and how to have it tested."""
    reasons = Counter[str]()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if "root" in reason:
            reason = ORDINARY if os.geteuid() == 0 else ROOT
        reasons[reason] += 1
    for reason, number in reasons.items():
        terminalreporter.write_line(f"{number} skipped: {reason}")


@pytest.fixture(scope="session")
def open_python() -> Iterator[str]:
    """An interpreter like this one that every user of the machine can read."""
    with python_for_all() as python:
        yield python


forget_what_was_inherited()
gc.disable()  # until the tests are collected: nearly all that is made meanwhile stays
# How long an example takes, or is looked for, says how busy the machine is, and nothing of the code. Nor does `make check`
# find another example each time: whoever runs a test by hand looks for new ones, and so does the campaign.
hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    derandomize=is_sampled,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tests")
# Who is silent for a second or two on a busy machine is no dead one; tests that are about these limits set them.
daemon_client.STATUS_WAIT = 20.0
proxies.ASKING = 20.0
file_systems.PATIENCE_S = 20.0  # asked while another test has mounted one that may never answer
# Made for every command line anew, the tree of commands takes three quarters of what a command in this process takes.
typer.main.get_command = cache(typer.main.get_command)
