"""Whatever an operator breaks, `status`, `incidents`, `why`, the notices and the journal tell it as it was."""

import json
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Served
from tests.acceptance.operators_week import (
    TABLE,
    Breakage,
    Operator,
    both_killed,
    daemon_killed_thrice,
    now_us,
)
from tests.long_form import sample
from tests.postbox import postbox

SLOW_DISK = "log: could not be written from"
"""What is told where the disk takes nothing for seconds, as on a machine that does too much else."""
BRIEFLY_HELD = re.compile(
    r"  held back (for T|since AT) by (the pause between|its own budget|.*, on which it depends)"
)
"""What is told only where it has lasted for a tenth of a second, which depends on the machine."""
ROWS = [row for row in TABLE if row.short or sample(False, True)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_it_is_told_as_it_was(served: Served, tmp_path: Path, row: Breakage) -> None:
    with ExitStack() as owned, postbox() as box:
        it = happened(served, tmp_path, row, box, owned)
        assert told(it, row) == expected(row)
        holds_in_time(it)


def happened(served: Served, directory: Path, row: Breakage, box: Any, owned: ExitStack) -> Operator:
    """The row's course on a daemon of its own, until nothing is under way any more."""
    it = Operator(served, box, directory, owned)
    os.mkfifo(directory / "fifo")
    it.write("program", "echo no database >&2\nexit 3\n")
    it.write("app.log", "")
    it.write("backup", "")
    (directory / "bin").mkdir()
    shutil.copy("/bin/sleep", directory / "bin" / "gone")
    if row.small_disk:
        it.small_disk()
    it.configure(row.settings)
    it.breaks = now_us()
    if not row.starts_itself:
        served.start()
    row.course(it)
    it.until(lambda: len(it.notices()) >= len(row.truth.notices), "the notices")
    it.until(it.is_quiet, "nothing is under way")
    it.until(lambda: len(box.posts) >= len(it.notices()), "the notices have arrived")
    # A single probe that is late on a busy machine is soon forgotten.
    it.until(lambda: it.is_wrong() == row.truth.wrong, "the status is as it is to stay")
    return it


def told(it: Operator, row: Breakage) -> dict[str, Any]:
    """What Pulse tells, with names for what differs from run to run."""
    states = {one["name"]: one["state"] for one in it.served.status()["processes"]}
    heads = {name: it.upulse("why", name).out.splitlines()[0] for name in (*states, *row.truth.why)}
    sent = sorted(post["title"] for _, post in it.box.posts)
    if row.course is daemon_killed_thrice:  # what is sent when it is killed is sent again
        sent = sorted(set(sent))
    assert sent == sorted(f"{one['title']} ({os.uname().nodename})" for one in it.notices())
    return {
        "states": states,
        "wrong": it.is_wrong(),
        "incidents": in_any_order(row, incidents(it)),
        "why": [head.partition("  since")[0] for head in heads.values()],
        "notices": [(one["severity"], it.plain(one["topic"])) for one in it.notices()],
        "warnings": warnings(it),
    }


def expected(row: Breakage) -> dict[str, Any]:
    truth = row.truth
    return {
        "states": dict(truth.states),
        "wrong": truth.wrong,
        "incidents": in_any_order(row, truth.incidents.splitlines()),
        "why": [f"process {name}  {state}" for name, state in truth.states.items()]
        + list(truth.why.values()),
        "notices": list(truth.notices),
        "warnings": sorted(truth.warnings),
    }


def in_any_order(row: Breakage, lines: list[str]) -> list[str]:
    """The lines sorted, where chance says which of two deaths is seen first."""
    return sorted(lines) if row.course is both_killed else lines


def incidents(it: Operator) -> list[str]:
    """The lines of the tree, without what draws it."""
    _, *lines = it.upulse("incidents").out.rstrip().splitlines()
    found = []
    for line in lines:
        text = line.lstrip("│├└─ ")
        indent = "  " if line[:4].strip() in ("", "│") and not line.startswith(("├", "└")) else ""
        found.append(indent + it.plain(text).removeprefix("AT  "))
    return [
        line for line in found if not line.startswith(f"error {SLOW_DISK}") and not BRIEFLY_HELD.match(line)
    ]


def warnings(it: Operator) -> list[str]:
    """What the journal has of `warning` and above, each sentence once, in the order of the alphabet."""
    lines = [json.loads(line) for line in it.served.said.read_text().splitlines()]
    bad = [
        " ".join(it.plain(one["message"]).split()) for one in lines if one["level"] not in ("debug", "info")
    ]
    return sorted(line for line in dict.fromkeys(bad) if not line.startswith(SLOW_DISK))


def holds_in_time(it: Operator) -> None:
    """Each incident lies where it happened, and reads the same from wherever one looks."""
    whole = it.upulse("incidents", "--json").json
    for one in whole:
        assert at(one["began"]) >= it.breaks
        if one["ended"] and it.mends:
            assert at(one["ended"]) >= it.mends
            unsure = at(one["began"]) - at(one["began_after"] or one["began"])
            assert one["lasted_ms"] * 1000 + unsure >= it.mends - it.broken
        if one["ended"] and one["about"] != "daemon":
            assert one["lasted_ms"] * 1000 <= now_us() - it.breaks
    middle = [(at(one["began"]) + at(one["ended"])) // 2 for one in whole if one["ended"]]
    for since in (it.breaks, *middle[:1], it.broken or now_us()):
        seen = it.upulse("incidents", "--json", "--since", iso(since)).json
        assert settled(seen) == settled(one for one in whole if not (end := over(one)) or at(end) >= since)


def over(told: Any) -> str | None:
    """When it was over; of a line of a log, when it was written, if that was the last one."""
    return told["ended"] or (told["last_seen"] if told["about"] == "log" else None)


def settled(told: Iterable[Any]) -> list[Any]:
    """Without how often and when last what goes on has happened by now, and what holds it back now."""
    now = {"times": None, "last_seen": None}
    return [
        {**one, "held": None}
        if one["ended"]
        else {
            **one,
            **now,
            "held": None,
            "causes": [{**cause, "times": None, "last": None} for cause in one["causes"]],
        }
        for one in told
    ]


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


def iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6).astimezone().isoformat()
