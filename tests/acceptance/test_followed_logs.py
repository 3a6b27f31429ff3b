"""A real daemon that follows real logs: killed in the middle of a stream, it tells each line once."""

import json
import random
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pulse_adapters.sqlite.connect import connect_readonly
from tests import processes
from tests.acceptance.conftest import Served
from tests.long_form import sample


def config(place: Path, **more: Any) -> str:
    rest = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    return f'[[log]]\npath = "{place}/*.log"\nkeywords = ["ERROR"]\n{rest}'


def events(served: Served, kind: str) -> list[dict[str, Any]]:
    with closing(connect_readonly(served.home.events)) as log:
        rows = log.execute("SELECT subject, data FROM event WHERE kind = ? ORDER BY seq", (kind,)).fetchall()
    return [{"subject": subject, **json.loads(data)} for subject, data in rows]


def told(served: Served) -> list[str]:
    return [line for row in events(served, "log-matched") for line in row.get("lines", ())]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log").touch()
    return tmp_path / "logs"


def follow(served: Served) -> None:
    """Start, and wait until the log is followed: what was there before is history."""
    served.start()
    served.eventually(lambda: sources(served) == 1, "the log is followed")


def sources(served: Served) -> int:
    return int(served.status()["vitals"].get("error-log", {}).get("sources", 0))


def write(path: Path, *lines: str) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_a_daemon_killed_in_mid_stream_tells_each_line_once_across_rotations(
    served: Served, logs: Path
) -> None:
    served.configure(config(logs, lines_per_minute=100_000))
    log, dice, number = logs / "app.log", random.Random(11), 0
    follow(served)
    write(log, "ERROR first")
    served.eventually(lambda: told(served) == ["ERROR first"], "the first line is told")
    for turn in range(sample(5, 12)):
        for _ in range(20):
            write(log, f"ERROR {number}", "fine")
            number += 1
            time.sleep(dice.random() * 0.004)
        served.kill()
        write(log, f"ERROR {number}")
        number += 1
        if turn % 3 == 0:
            log.rename(logs / f"app.log.{turn + 1}")
        served.start()
        served.append("safe-mode-left")  # so many crashes in a row, and logs would not be followed
    expected = ["ERROR first", *(f"ERROR {one}" for one in range(number))]
    served.eventually(lambda: len(told(served)) >= len(expected), "every line is told")
    assert told(served) == expected


@pytest.mark.wall_clock
def test_a_storm_is_counted_and_reported_and_the_daemon_answers_meanwhile(served: Served, logs: Path) -> None:
    served.configure(config(logs))
    follow(served)
    write(logs / "app.log", "ERROR first")
    served.eventually(lambda: told(served), "the first line is told")
    for _ in range(writes := sample(10, 40)):
        write(logs / "app.log", *["ERROR: it never ends"] * 5_000)
        began = time.monotonic()
        served.status()
        assert time.monotonic() - began < 10
    served.eventually(
        lambda: sum(row["count"] for row in events(served, "log-matched")) == 5_000 * writes + 1,
        "every line is counted",
    )
    assert 600 <= len(told(served)) <= 600 * 5  # so many a minute
    assert len(events(served, "log-matched")) < 300
    assert f"log:{logs / 'app.log'}" in [row["subject"] for row in events(served, "condition-raised")]

    def titles() -> list[str]:
        return [row["params"]["title"] for row in events(served, "effect")]

    served.eventually(lambda: f"storm in {logs / 'app.log'}" in titles(), "a person is told")


def test_settings_that_change_are_followed_at_once(served: Served, logs: Path) -> None:
    served.configure("# nothing\n")
    served.start()
    write(logs / "app.log", "ERROR history")
    served.configure(config(logs))
    served.append("reload-requested")
    served.eventually(lambda: len(events(served, "settings-loaded")) == 2, "the settings are loaded")
    served.eventually(lambda: sources(served) == 1, "the log is followed")
    write(logs / "app.log", "ERROR new")
    served.eventually(lambda: told(served) == ["ERROR new"], "the new line is told")
    served.configure("# nothing\n")
    served.append("reload-requested")
    served.eventually(lambda: not children(served), "nobody reads")


def children(served: Served) -> list[int]:
    assert served.daemon is not None
    return processes.children(served.daemon.pid, "pulse_adapters.logs.tail")
