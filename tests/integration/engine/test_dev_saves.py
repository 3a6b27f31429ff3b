"""`upulse dev` without a daemon: what an author hears after each save."""

import asyncio
import os
import re
import sqlite3
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import watchfiles
from watchfiles.main import FileChange

from pulse_adapters.rule_host import hosts
from pulse_core.app.engine.dev_reports import DevRemark, LoadRefused, RulesLoaded, TickSeen
from tests.integration.cli.cli_home import CliHome
from tests.integration.engine.engine_home import ALLOWED, CALM, WISHING, Ear, author, new_home, save, spoil
from tests.integration.rule_host.rule_host_engines import place_of, rule
from upulse_cli.wiring.dev import UNNAMED, saves

QUICK = '[watch]\nsystem_interval = "100ms"\n'
FAILING = rule("return 1 / 0  # here", "failing")


LATE = rule("time.time()  # here\nreturn await inner(prev, curr)", "late", before="import time")
LEAVING = rule("os._exit(3)", "leaving", before="import os")


async def test_after_each_save_an_author_hears_what_it_does(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", CALM, f"{QUICK}{ALLOWED}")
    async with author(home) as ear:
        assert (await ear.next(RulesLoaded)).loaded.rules == ("calm",)
        await what_is_saved_is_live_at_once_and_says_what_it_wishes(home, ear)
        await rules_that_do_not_load_are_refused_with_their_line_and_the_old_ones_go_on(home, ear)
        await an_error_names_its_rule_and_line(home, ear)
        await what_makes_a_replay_differ_is_told_at_the_save_and_when_it_is_called(home, ear)
        await rules_that_end_their_host_are_tried_again_at_the_next_tick(home, ear)


@pytest.mark.parametrize(
    "refusal", [RuntimeError("Too many open files"), OSError("OS file watch limit reached")]
)
async def test_where_inotify_grants_nothing_the_files_are_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    watch = watchfiles.awatch

    def without_inotify(
        path: str, *, force_polling: bool = False, **more: Any
    ) -> AsyncIterator[set[FileChange]]:
        if not force_polling:
            raise refusal
        return watch(path, force_polling=True, **more)

    monkeypatch.setattr(watchfiles, "awatch", without_inotify)
    saved = saves(str(tmp_path))
    try:
        coming = asyncio.ensure_future(anext(saved))
        for number in range(200):  # its first look may come later than the first file
            (tmp_path / "rule.py").write_text(f"# {number}")
            if (await asyncio.wait([coming], timeout=0.1))[0]:
                break
        assert coming.result() == ["rule.py"]
    finally:
        await saved.aclose()


async def test_a_tree_that_is_gone_is_said_and_not_looked_for_without_a_pause(tmp_path: Path) -> None:
    saved = saves(str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError):
        await asyncio.wait_for(anext(saved), 10)


async def test_a_name_that_is_not_utf8_is_a_save_like_any_other(tmp_path: Path) -> None:
    odd, saved = tmp_path / os.fsdecode(b"\xff"), saves(str(tmp_path))
    try:
        coming = asyncio.ensure_future(anext(saved))
        for number in range(200):  # its first look may come later than the first file
            odd.write_text(f"# {number}")
            if (await asyncio.wait([coming], timeout=0.1))[0]:
                break
        assert coming.result() == [UNNAMED]
        coming = asyncio.ensure_future(anext(saved))
        for number in range(200):
            (tmp_path / "rule.py").write_text(f"# {number}")
            if (await asyncio.wait([coming], timeout=0.1))[0]:
                break
        assert coming.result() == ["rule.py"]
    finally:
        await saved.aclose()


async def what_is_saved_is_live_at_once_and_says_what_it_wishes(home: CliHome, ear: Ear) -> None:
    save(home, WISHING)
    began = await ear.next(RulesLoaded)
    assert began.loaded.rules == ("wishing",)
    assert "rules/own.py" in began.files
    seen = await ear.next(TickSeen)
    assert seen.is_again
    (wish,) = seen.wishes
    assert (wish.effect.key, wish.effect.rule, wish.effect.reason) == ("my:wish", "wishing", "it is time")
    assert wish.state == "new"


async def rules_that_do_not_load_are_refused_with_their_line_and_the_old_ones_go_on(
    home: CliHome, ear: Ear
) -> None:
    spoil(home)
    refused = await ear.next(LoadRefused)
    assert "rules/own.py:2" in refused.words
    assert refused.goes_on
    seen = await ear.next(TickSeen, lambda seen: not seen.is_again)
    assert [layer.rule for layer in seen.layers] == ["wishing"]


async def an_error_names_its_rule_and_line(home: CliHome, ear: Ear) -> None:
    save(home, FAILING)
    await ear.next(RulesLoaded)
    (fault,) = (await ear.next(TickSeen)).faults
    assert fault.whose == "rule:failing"
    assert "ZeroDivisionError" in fault.message
    assert place_of(FAILING) in fault.message


async def what_makes_a_replay_differ_is_told_at_the_save_and_when_it_is_called(
    home: CliHome, ear: Ear
) -> None:
    save(home, LATE)
    await ear.next(RulesLoaded)
    seen = await ear.next(TickSeen)
    assert [place_of(LATE) in words for words in seen.warnings] == [True]
    assert not seen.faults


async def rules_that_end_their_host_are_tried_again_at_the_next_tick(home: CliHome, ear: Ear) -> None:
    save(home, LEAVING)
    await ear.next(RulesLoaded)
    (fault,) = (await ear.next(TickSeen)).faults
    assert "rule:leaving" in fault.whose
    assert "status 3" in fault.message
    await ear.next(RulesLoaded)
    save(home, CALM)
    await ear.next(RulesLoaded, lambda began: began.loaded.rules == ("calm",))
    assert not (await ear.next(TickSeen)).faults


async def test_rules_that_never_loaded_are_live_as_soon_as_they_are_mended(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home")
    spoil(home)
    async with author(home) as ear:
        assert not (await ear.next(LoadRefused)).goes_on
        save(home, CALM)
        assert (await ear.next(RulesLoaded)).loaded.rules == ("calm",)


async def test_rules_that_take_for_ever_to_load_hold_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_less = partial(hosts.ChildHosts, load=4.0)  # than ten seconds
    monkeypatch.setattr(hosts, "ChildHosts", in_less)
    home = new_home(tmp_path / "home", CALM, QUICK)
    async with author(home) as ear:
        await ear.next(RulesLoaded)
        save(home, f"while True:\n    pass\n{CALM}")
        for _ in range(3):
            assert (await ear.next(TickSeen, lambda seen: not seen.is_again)).layers
        refused = await ear.next(LoadRefused)
        assert "too long" in refused.words
        assert "rules/own.py" in refused.files


async def test_alone_it_senses_the_machine_and_records_nothing(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", WISHING, QUICK)
    before = {path.name for path in home.path.iterdir()}
    async with author(home) as ear:
        assert "no daemon runs" in (await ear.next(DevRemark)).words
        first = await ear.next(TickSeen, lambda seen: not seen.is_again)
        second = await ear.next(TickSeen)
        assert second.snapshot.tick == first.snapshot.tick + 1
        window = second.snapshot.window("system-resource")
        assert window.last is not None
        assert 0 <= window.last.data["memory"] <= 1
        assert len(window.samples) >= 2
    assert {path.name for path in home.path.iterdir()} == before
    assert not home.path.joinpath("events.db").exists() or no_rows(home.path)


def no_rows(home: Path) -> bool:
    """Whether the log is empty."""
    with sqlite3.connect(home / "events.db") as log:
        return not log.execute("SELECT 1 FROM event LIMIT 1").fetchall()


def test_once_says_by_its_exit_code_whether_anything_is_wrong(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", WISHING, ALLOWED)
    fine = home.upulse("dev", "--once")
    assert "wish      my:wish by wishing: it is time" in fine.out
    save(home, FAILING)
    wrong = home.upulse("dev", "--once", code=1)
    assert re.search(rf"error     rule:failing: ZeroDivisionError.*{place_of(FAILING)}", wrong.out)
    spoil(home)
    assert "refused" in home.upulse("dev", "--once", code=1).out


def test_each_news_is_a_line_of_json_for_programs(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", WISHING, ALLOWED)
    said = home.upulse("dev", "--once", "--json").lines
    assert [one["what"] for one in said] == ["remark", "loaded", "tick"]
    assert said[2]["effects"][0]["key"] == "my:wish"
    assert said[2]["effects"][0]["state"] == "new"


def test_executing_needs_a_daemon(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", WISHING)
    assert "no daemon runs" in home.upulse("dev", "--execute", code=1).err
