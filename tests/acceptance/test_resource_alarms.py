"""A disk that is really full and memory that is said to be short: warned, cleaned, archived, stopped, resolved."""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from pulse_adapters.sqlite.event_reader import SqliteEventReader
from pulse_adapters.sqlite.vitals_reader import SqliteVitalsReader
from pulse_core.model.vitals import Sample
from pulse_core.ports.readers import EventQuery
from tests.acceptance.conftest import Served
from tests.integration.files.files_scene import use_up_small_numbers
from tests.processes import child_of_test
from tests.small_disk import small_disk

MEBIBYTE = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    with small_disk(tmp_path / "disk", "16m", is_demanded=True) as disk:
        use_up_small_numbers(disk)
        yield disk


def configure(served: Served, disk: Path, more: str = "", bound: str = "") -> None:
    served.configure(f"""
[watch]
system_interval = "100ms"

[resources]
disk = {{ path = "{disk}", raise = 0.9, clear = 0.5 }}
patience = "1s"
{more}
{bound}
""")


def news(served: Served) -> list[str]:
    """What was concluded of conditions, in order."""
    with SqliteEventReader(served.home.path) as log:
        rows = log.events(EventQuery(kinds=("condition-raised", "condition-cleared")))
        return [f"{row.kind.removeprefix('condition-')} {row.subject}" for row in rows]


def wishes(served: Served, action: str) -> list[dict[str, Any]]:
    with SqliteEventReader(served.home.path) as log:
        told = [json.loads(row.data) for row in log.events(EventQuery(kinds=("effect",)))]
        return [wish for wish in told if wish["action"] == action]


def titles(served: Served) -> list[str]:
    return [wish["params"]["title"] for wish in wishes(served, "notify")]


def results(served: Served) -> list[dict[str, Any]]:
    with SqliteEventReader(served.home.path) as log:
        return [
            json.loads(row.data).get("result", {}) for row in log.events(EventQuery(kinds=("effect-acked",)))
        ]


def samples(served: Served) -> list[Sample]:
    with SqliteVitalsReader(served.home.path) as vitals:
        return vitals.last_samples()


def fill(directory: Path, leave: int = 0) -> None:
    """Files until nothing is left but this many bytes."""
    directory.mkdir(exist_ok=True)
    with suppress(OSError):
        for number in range(10_000):
            (directory / f"{number}").write_bytes(bytes(MEBIBYTE // 4))
    free = os.statvfs(directory).f_bavail * 4096
    for path in sorted(directory.iterdir()):
        if free >= leave:
            return
        free += path.stat().st_size
        path.unlink()


def test_a_disk_that_fills_is_warned_of_cleaned_and_resolved(served: Served, small: Path) -> None:
    configure(served, small, f'clean = ["{small}/cache"]\nclean_age = "0s"')
    served.start()
    (small / "precious").write_bytes(bytes(MEBIBYTE))
    fill(small / "cache")
    served.eventually(lambda: len(titles(served)) == 2, "it is resolved")
    assert news(served) == [f"raised disk:{small}", f"cleared disk:{small}"]
    assert titles(served) == [f"{small} is nearly full", f"resolved: {small} is nearly full"]
    assert {path.name for path in small.iterdir()} == {"precious", "cache"}
    (cleaned,) = wishes(served, "clean-paths")
    assert (cleaned["rule"], cleaned["params"]["near"]) == ("resource_guard", str(small))
    result = next(result for result in results(served) if "files" in result)
    ledger = [
        json.loads(line) for line in (served.home.path / "logs" / "cleaned.jsonl").read_text().splitlines()
    ]
    assert result["files"] == len(ledger) > 40
    assert sum(line["size"] for line in ledger) == result["bytes"]
    assert served.stop() == 0


def test_it_works_on_a_home_whose_own_disk_is_the_full_one(small: Path) -> None:
    served = Served(small / "home")
    try:
        configure(served, small, f'clean = ["{small}/cache"]\nclean_age = "0s"')
        served.start()
        # What it needs for its own files as it begins, and gives back if there is no more, must not be what fills the disk.
        served.eventually(lambda: samples(served), "its own files are made")
        fill(small / "cache")
        # Told more before, if it was cleaned while it was filled.
        resolved = [f"resolved: {small} is nearly full"]
        served.eventually(lambda: titles(served)[-1:] == resolved, "it is resolved", 60)
        assert news(served) == [f"raised disk:{small}", f"cleared disk:{small}"]
        assert served.stop() == 0
    finally:
        served.close()


def test_what_cleaning_does_not_help_is_archived(served: Served, small: Path, tmp_path: Path) -> None:
    sessions = f'sessions = {{ root = "{small}/sessions", keep = "0s", archive = "{tmp_path}/archive" }}'
    configure(served, small, f'clean = ["{small}/cache"]\nclean_age = "0s"\n{sessions}')
    (small / "cache").mkdir()
    served.start()
    fill(small / "sessions")
    served.eventually(
        lambda: titles(served)[-1:] == [f"resolved: {small} is nearly full"], "it is resolved", 60
    )
    actions = [
        wish["action"] for kind in ("clean-paths", "archive-sessions") for wish in wishes(served, kind)
    ]
    assert actions == ["clean-paths", "archive-sessions"]
    assert list((small / "sessions").iterdir()) == []
    files = []
    for archive in (tmp_path / "archive").iterdir():
        with tarfile.open(archive) as tar:
            files += tar.getnames()
    assert len(files) > 50


def test_what_nothing_helps_is_told_again_with_what_was_tried(served: Served, small: Path) -> None:
    configure(served, small, f'clean = ["{small}/cache"]')
    served.start()
    fill(small / "cache")  # all of it is young
    served.eventually(lambda: len(titles(served)) == 2, "a person is told")
    assert titles(served)[1] == f"{small} is nearly full, and nothing helped"
    assert "Tried: clean-paths (freed nothing)" in wishes(served, "notify")[1]["params"]["text"]
    assert len(list((small / "cache").iterdir())) > 50


def test_a_kill_in_the_middle_of_archiving_leaves_nothing_half_done(
    served: Served, small: Path, tmp_path: Path
) -> None:
    sessions = f'sessions = {{ root = "{small}/sessions", keep = "0s", archive = "{tmp_path}/archive" }}'
    configure(served, small, sessions)
    (small / "sessions").mkdir()
    with (small / "sessions" / "large").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(os.urandom(MEBIBYTE // 2))
    served.start()
    archive = tmp_path / "archive"
    served.eventually(lambda: archive.exists() and list(archive.iterdir()), "an archive is being written")
    served.kill()
    served.start()
    served.eventually(
        lambda: titles(served)[-1:] == [f"resolved: {small} is nearly full"], "it is resolved", 60
    )
    assert not list((tmp_path / "archive").glob(".*.part"))
    assert len(list((tmp_path / "archive").iterdir())) == 1
    assert list((small / "sessions").iterdir()) == []


CONSUMER = f"import time; held = bytearray({psutil.virtual_memory().total // 64}); print(flush=True); time.sleep(1000)"


@pytest.mark.wall_clock
def test_the_worst_of_those_that_may_be_stopped_is_stopped_and_nobody_else(
    served: Served, small: Path
) -> None:
    word = f"w{uuid.uuid4().hex}"
    served.configure(f"""
[watch]
system_interval = "100ms"
process_interval = "100ms"

[resources]
memory = {{ raise = 0.0001, clear = 0.00001, for = "0s" }}
disk = {{ path = "{small}" }}
patience = "1s"
stop = ["{word}"]

[[process]]
name = "guarded"
start = ["{sys.executable}", "-c", "{CONSUMER}", "{word}"]
""")
    argv = [sys.executable, "-c", CONSUMER, word]
    with (
        child_of_test(subprocess.Popen(argv, stdout=subprocess.PIPE)) as worst,
        child_of_test(subprocess.Popen(["sleep", "9011"])) as other,
    ):
        try:
            assert worst.stdout is not None
            worst.stdout.readline()
            served.start()
            guarded = served.pid_when_up("guarded")
            began = time.monotonic()
            assert worst.wait(60) == -signal.SIGTERM
            assert time.monotonic() - began < 20
            served.eventually(
                lambda: "memory is short, and nothing helped" in titles(served), "it is told", 30
            )
            (stopped,) = wishes(served, "stop-process")
            assert stopped["params"]["consumer"]["pid"] == worst.pid
            assert served.pid_when_up("guarded") == guarded
            assert other.poll() is None
        finally:
            other.kill()
            worst.kill()
