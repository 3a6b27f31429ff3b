"""The page is looked for at most once a second, whoever asks, and written whole."""

import os
import threading
import time
from pathlib import Path

import pytest

from pulse_adapters.metrics.families import MetricsInput
from pulse_adapters.metrics.page import Page
from pulse_adapters.metrics.process import PeriodicTask, write_page
from pulse_core.model.errors import PulseError
from tests.unit.metrics.metrics_standings import STANDING


class Looks:
    """Counts looks; each may take a while."""

    def __init__(self, takes: float = 0.0) -> None:
        self.count = self.together = self.most = 0
        self._takes = takes

    def __call__(self) -> MetricsInput:
        self.count += 1
        self.together += 1
        self.most = max(self.most, self.together)
        time.sleep(self._takes)
        self.together -= 1
        return MetricsInput(True, STANDING)


def test_a_look_holds_for_a_second() -> None:
    looks = Looks()
    page = Page(looks, "1", fresh=3_600)
    bodies = {page.served()[0] for _ in range(100)}
    assert (looks.count, len(bodies)) == (1, 1)
    Page(looks, "1", fresh=0).served()
    assert looks.count == 2


def test_nobody_looks_before_somebody_asks() -> None:
    looks = Looks()
    Page(looks, "1")
    assert looks.count == 0


def test_many_who_ask_at_once_share_one_look() -> None:
    looks = Looks(takes=0.05)
    page = Page(looks, "1", fresh=3_600)
    threads = [threading.Thread(target=page.served) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (looks.count, looks.most) == (1, 1)


def test_who_asks_for_openmetrics_gets_it() -> None:
    page = Page(Looks(), "1")
    body, kind = page.served("application/openmetrics-text; version=1.0.0,text/plain;q=0.5")
    assert kind.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert page.served("")[1].startswith("text/plain")


def test_the_last_page_says_that_the_daemon_is_gone_and_nothing_of_what_it_guarded() -> None:
    looks = Looks()
    page = Page(looks, "1", fresh=0)
    assert b"pulse_process_up" in page.served()[0]
    page.farewell()
    last = page.served()[0]
    assert b"pulse_up 0.0" in last
    assert b'process="gateway"' not in last
    assert looks.count == 1


def test_a_file_is_replaced_whole_and_everybody_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "pulse.prom"
    assert write_page(Page(Looks(), "first"), file) == ""
    with file.open("rb") as reader:
        assert write_page(Page(Looks(), "second"), file) == ""
        assert b"first" in reader.read()
    assert b"second" in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["pulse.prom"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "pulse.prom").mkdir()
    assert write_page(Page(Looks(), "1"), tmp_path / "pulse.prom").endswith(
        "can't be written: Is a directory"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["pulse.prom"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["pulse.prom", ".pulse.prom.new"])
def test_nothing_that_lies_in_the_folder_is_written_through_or_waited_for(tmp_path: Path, name: str) -> None:
    (victim := tmp_path / "victim").write_bytes(b"of root")
    (folder := tmp_path / "met").mkdir()
    (folder / name).symlink_to(victim)
    assert write_page(Page(Looks(), "1"), folder / "pulse.prom") == ""
    assert victim.read_bytes() == b"of root"
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert write_page(Page(Looks(), "1"), folder / "pulse.prom") == ""
    assert b"pulse_up" in (folder / "pulse.prom").read_bytes()


def test_the_folder_may_be_reached_by_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("second/.")
    (tmp_path / "second").symlink_to(tmp_path / "link" / ".." / "folder")
    assert "Too many levels" in write_page(Page(Looks(), "1"), tmp_path / "link" / "pulse.prom")
    (tmp_path / "second").unlink()
    (tmp_path / "second").symlink_to(tmp_path / "folder" / ".." / "folder")
    assert write_page(Page(Looks(), "1"), tmp_path / "link" / "pulse.prom") == ""
    assert (tmp_path / "folder" / "pulse.prom").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
@pytest.mark.parametrize("name", ["link", "link/inner"])
def test_no_link_of_another_user_leads_root_to_the_folder(tmp_path: Path, name: str) -> None:
    (victim := tmp_path / "victim").mkdir()
    (victim / "inner").mkdir()
    (tmp_path / "link").symlink_to(victim)
    assert write_page(Page(Looks(), "1"), tmp_path / name / "pulse.prom") == ""
    os.chown(tmp_path / "link", 65_534, 65_534, follow_symlinks=False)
    said = write_page(Page(Looks(), "1"), tmp_path / name / "pulse.prom")
    assert said.endswith("can't be written: link is a link of another user's")


def test_a_chore_that_fails_says_so_once_and_is_done_again_less_and_less_often() -> None:
    said: list[str] = []
    answers = iter(["it is broken"] * 12 + ["", "it is broken", ""])
    chore = PeriodicTask(lambda: next(answers), every=5, say=said.append, longest=60)
    assert [chore.once() for _ in range(12)] == [10, 20, 40, *[60] * 9]
    assert said == ["it is broken"]
    assert chore.once() == 5
    assert chore.once() == 10
    assert said == ["it is broken"] * 2
    assert chore.once() == 5


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PulseError("no log there"), "no log there"),
        (OSError(28, "No space left on device", "/x"), "/x: No space left on device"),
        (ValueError("odd"), "ValueError: odd"),
    ],
)
def test_whatever_a_chore_raises_is_words(error: Exception, words: str) -> None:
    said: list[str] = []

    def work() -> str:
        raise error

    PeriodicTask(work, 1, said.append).once()
    assert said == [words]
