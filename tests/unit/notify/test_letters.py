"""Notices put into words for people elsewhere, and where they go."""

from typing import Any

import pytest
from apprise.plugins import N_MGR as SERVICES

from pulse_adapters.notify.addresses import delivery_faults, resolve_url, unusable_addresses
from pulse_adapters.notify.deliver import NO_APPRISE, mask_secrets, send_message
from pulse_adapters.notify.executor import ALONE, ENTRY, TITLE, RecordedNotice, compose_message, one_line
from pulse_core.actions import NoticeParams
from pulse_core.settings.notify import NotifySettings
from pulse_core.settings.settings import Settings

AT = 1_800_000_000_000_000  # 2027-01-15 08:00:00 UTC
SECOND, HOUR = 1_000_000, 3_600_000_000


def notice(number: int, title: str = "", text: str = "words", **more: Any) -> RecordedNotice:
    said = NoticeParams(title=title or f"n{number}", text=text, **more)
    return RecordedNotice(number, AT + number * SECOND, said)


def test_one_by_itself_is_told_in_full() -> None:
    one = compose_message("json://x", [notice(1, text="why\nand what next")], "web1", AT + 3 * SECOND)
    assert one == ("json://x", "n1 (web1)", "why\nand what next", "warning")


def test_one_without_text_repeats_its_title() -> None:
    assert compose_message("u", [notice(1, text="")], "h", AT).body == "n1"


def test_what_others_printed_acts_on_no_terminal() -> None:
    colour = notice(1, title="n\x1b[31m", text="red \x1b[31mred\r\nblue")
    one = compose_message("u", [colour], "h", AT)
    assert (one.title, one.body) == ("n\\x1b[31m (h)", "red \\x1b[31mred\\r\nblue")
    several = compose_message("u", [colour, notice(2)], "h", AT)
    assert "\x1b" not in several.body


def test_one_that_is_late_says_of_when_it_is() -> None:
    body = compose_message("u", [notice(1)], "h", AT + HOUR).body
    assert body == "It is of 2027-01-15 08:00:01 UTC, and may be over.\n\nwords"
    assert compose_message("u", [notice(1)], "h", AT + 7 * SECOND).body == body
    assert compose_message("u", [notice(1)], "h", AT + 6 * SECOND).body == "words"


def test_what_is_over_is_not_said_to_be_over_perhaps() -> None:
    over = notice(1, over=True)
    assert compose_message("u", [over], "h", AT + HOUR).body == "It is of 2027-01-15 08:00:01 UTC.\n\nwords"
    both = compose_message("u", [over, notice(2, over=True)], "h", AT + HOUR).body
    assert both.startswith("2 of them waited to be sent.\n\n2027")


def test_one_of_an_earlier_daemon_says_of_when_it_is() -> None:
    body = compose_message("u", [notice(1)], "h", AT + 3 * SECOND, AT + 2 * SECOND).body
    assert body == "It is of 2027-01-15 08:00:01 UTC, and may be over.\n\nwords"
    assert compose_message("u", [notice(1)], "h", AT + 3 * SECOND, AT + SECOND).body == "words"


def test_several_are_a_list_with_times() -> None:
    several = compose_message("u", [notice(1), notice(2, text="")], "web1", AT + 5 * SECOND)
    assert several.title == "2 notices from web1"
    assert several.body == "2027-01-15 08:00:01 UTC  n1: words\n\n2027-01-15 08:00:02 UTC  n2"


@pytest.mark.parametrize("late", [0, 1, 2])
def test_it_is_said_how_many_had_to_wait(late: int) -> None:
    notices = [notice(0), notice(1000)]
    body = compose_message("u", notices, "h", AT + (0, 400, 2_000)[late] * SECOND).body
    assert body.startswith(f"{late} of them waited to be sent, and may be over.\n\n2027" if late else "2027")


@pytest.mark.parametrize(
    ("severities", "tone"),
    [
        (["info"], "info"),
        (["warning"], "warning"),
        (["error"], "failure"),
        (["critical"], "failure"),
        (["over"], "success"),
        (["unwatched"], "warning"),
        (["unwatched", "over", "info"], "warning"),
        (["warning", "info", "over"], "warning"),
        (["info", "critical", "warning"], "failure"),
    ],
)
def test_services_mark_a_message_by_the_worst_of_its_notices(severities: list[str], tone: str) -> None:
    notices = [
        notice(
            number,
            over=one in ("over", "unwatched"),
            unwatched=one == "unwatched",
            severity="critical" if one in ("over", "unwatched") else one,
        )
        for number, one in enumerate(severities)
    ]
    assert compose_message("u", notices, "h", AT).tone == tone


def test_long_ones_are_cut() -> None:
    long = notice(1, "t" * 500, "x" * 10_000)
    alone, listed = compose_message("u", [long], "h", AT), compose_message("u", [long, long], "h", AT)
    assert len(alone.title) == TITLE + len(" (h)")
    assert len(alone.body) == ALONE
    assert alone.body.endswith("…")
    assert len(listed.body) < 2 * (ENTRY + 40)


@pytest.mark.parametrize(
    ("title", "text", "said"),
    [
        ("t", "", "t"),
        ("t", "two\nlines\tand\u2028more", "t: two lines and more"),
        ("a\x1b[2Jb\x00", "\x9b31m", "a?[2Jb?: ?31m"),
    ],
)
def test_a_notice_is_one_line_that_steers_nothing(title: str, text: str, said: str) -> None:
    assert one_line(NoticeParams(title=title, text=text)) == said


@pytest.mark.parametrize(
    ("name", "url"),
    [("json://x", "json://x"), ("env:THERE", "json://y"), ("env:EMPTY", ""), ("env:MISSING", "")],
)
def test_a_variable_is_looked_up_when_it_is_used(name: str, url: str) -> None:
    assert resolve_url(name, {"THERE": " json://y\n", "EMPTY": " "}) == url


def test_what_is_missing_is_said() -> None:
    def of(*urls: str) -> Any:
        return delivery_faults(Settings(notify=NotifySettings(urls=urls)), {"THERE": "json://y"})

    assert of() == []
    assert of("json://x", "env:THERE") == []
    (fault,) = of("env:THERE", "env:MISSING")
    assert fault.startswith("no notices go to env:MISSING: the variable is not set")


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulse_adapters.notify.addresses.PACKAGE", "no_such_package")
    settings = Settings(notify=NotifySettings(urls=("json://x/secret", "env:MISSING")))
    assert delivery_faults(settings, {})[-1] == f"no notices go to json://***, env:MISSING: {NO_APPRISE}"
    assert delivery_faults(Settings(), {}) == []
    words = unusable_addresses(settings, {})
    assert words[("notify", "urls", 0)] == f"no notices go to json://***: {NO_APPRISE}"
    assert unusable_addresses(Settings(), {}) == {}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Apprise imports
def test_a_package_that_the_service_of_an_address_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    service = SERVICES["jsons"]
    monkeypatch.setattr(service, "enabled", False)
    monkeypatch.setattr(service, "requirements", {"packages_required": "some-package >= 2"}, raising=False)
    needs = (
        "it needs some-package >= 2, which is not installed; install it with: pip install 'some-package>=2'"
    )
    settings = Settings(notify=NotifySettings(urls=("jsons://x/secret", "nope://y")))
    assert list(unusable_addresses(settings, {}).values()) == [
        f"no notices go to jsons://***: {needs}",
        "Apprise knows no service for nope://***, or misses a part of its URL",
    ]
    assert send_message({"url": "jsons://x/secret"}) == needs
    monkeypatch.setattr(service, "requirements", {"details": "not on this system"}, raising=False)
    assert "it needs what this machine does not have" in send_message({"url": "jsons://x/secret"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("error 500 from example.org", "error 500 from example.org"),
        ("POST https://example.org/abcdef123?x=secret42", "POST https://example.org/***?x=***"),
        ("user hunter22 was refused", "user *** was refused"),
    ],
)
def test_no_part_of_an_address_that_may_be_secret_is_told(text: str, shown: str) -> None:
    assert mask_secrets(text, "json://user:hunter22@example.org/abcdef123?x=secret42") == shown
