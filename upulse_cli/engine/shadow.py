"""Shadows from a person's side: begun, ended, and what came of them beside what production did."""

import os
import select
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pulse_adapters.config.home import Home
from pulse_adapters.ipc.lock import holder
from pulse_core.app.status import why_unheard
from pulse_core.model.errors import PulseError
from pulse_core.model.lock_holder import LockHolder
from pulse_core.model.moment import iso
from upulse_cli.engine.diary import LOCK, lines
from upulse_cli.engine.wishes import Wished, emitted
from upulse_cli.wiring.home import home_context

PATIENCE = 60.0
"""Seconds that a shadow may take to load its rules."""
ENDING = 10.0
SLACK_US = 2_000_000
"""Of one key, wishes that are not farther apart are the same: production folds only the newest of ticks in a hurry."""

Told = Mapping[str, Any]
WISH = Wished._fields


def running(home: Home) -> LockHolder | None:
    """The shadow that runs, if one does."""
    return holder(home.run / LOCK)


def start(home: Home, word: str) -> int:
    """Begin a shadow of this revision in the background; its process. Raises PulseError with the reason if it can't."""
    if found := running(home):
        raise PulseError(f"a shadow runs already (process {found.pid}); end it with: upulse shadow stop")
    if why := why_unheard(home_context(home)):
        raise PulseError(f"{why}; a shadow needs its ticks")
    read, write = os.pipe()
    argv = (sys.executable, "-P", "-m", "upulse_cli.engine.shadowing")
    words = ("--home", str(home.path), "--engine", word, "--tell", str(write))
    nowhere = subprocess.DEVNULL
    with open(read, "rb", buffering=0) as heard:
        child = subprocess.Popen(
            (*argv, *words), pass_fds=(write,), stdin=nowhere, stdout=nowhere, stderr=nowhere,
            start_new_session=True,
        )  # fmt: skip
        os.close(write)
        said = _heard(heard.fileno())
    if said != "ready":
        child.kill()
        child.wait()
        raise PulseError(f"no shadow of {word}: {said or 'it did not begin'}")
    child.returncode = 0  # it is not waited for: it goes on without us
    return child.pid


def _heard(pipe: int) -> str:
    """What it says until it says no more."""
    said, until = b"", time.monotonic() + PATIENCE
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (piece := os.read(pipe, 4096)):
            break
        said += piece
    return said.decode("utf-8", "replace")


def stop(home: Home) -> int:
    """End the shadow; its process. Raises PulseError if there is none."""
    if (found := running(home)) is None:
        raise PulseError("no shadow runs; start one with: upulse shadow start")
    end(found)
    return found.pid


def end(found: LockHolder) -> None:
    """Have a shadow end, by force if it must be."""
    try:
        process = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return
    try:
        for number, seconds in ((signal.SIGTERM, ENDING), (signal.SIGKILL, ENDING)):
            signal.pidfd_send_signal(process, number)  # type: ignore[attr-defined, unused-ignore]
            if select.select([process], [], [], seconds)[0]:
                break
    finally:
        os.close(process)


def report(home: Home) -> Told:
    """What the last shadow wished beside what production did in the same ticks. Raises PulseError if there was none."""
    said = list(lines(home.path))
    if not said:
        raise PulseError("there was no shadow yet; start one with: upulse shadow start")
    begun, through = said[0], [line for line in said if line["what"] == "through"]
    last = through[-1] if through else begun
    theirs = [{name: line[name] for name in WISH} for line in said if line["what"] == "wish"]
    upto = max([last["tick"], *(wish["tick"] for wish in theirs)])
    ours = [wish._asdict() for wish in emitted(home, begun["at"], begun["tick"] + 1, upto)]
    return {
        "running": running(home) is not None,
        "revision": begun["revision"],
        "commit": begun.get("commit", begun["revision"]),
        "dirty": begun.get("dirty", []),
        "rules": begun["rules"],
        "since": iso(begun["at"]),
        "until": iso(last["at"]),
        "ticks": last.get("ticks", 0),
        "wishes": {"shadow": len(theirs), "main": len(ours)},
        "differences": differences(theirs, ours),
        "errors": last.get("errors", 0),
        "faults": [
            {name: line[name] for name in ("at", "tick", "words")} for line in said if line["what"] == "fault"
        ],
        "ended": next((line["why"] for line in said if line["what"] == "ended"), None),
    }


def differences(theirs: Iterable[Told], ours: Iterable[Told]) -> Sequence[Told]:
    """The wishes that only the shadow had, or only main, by time."""
    left: dict[str, list[Told]] = defaultdict(list)
    for wish in ours:
        left[wish["key"]].append(wish)
    only = []
    for wish in theirs:
        same = next((one for one in left[wish["key"]] if _is_near(one, wish)), None)
        if same:
            left[wish["key"]].remove(same)
        else:
            only.append({"only": "shadow", **wish})
    only += [{"only": "main", **wish} for wishes in left.values() for wish in wishes]
    return sorted(only, key=lambda one: str(one["at"]))


def _is_near(one: Told, other: Told) -> bool:
    return one["tick"] == other["tick"] or abs(_us(one) - _us(other)) <= SLACK_US


def _us(wish: Told) -> float:
    from datetime import datetime

    return datetime.fromisoformat(wish["at"]).timestamp() * 1e6
