"""What one look of a check means, in words and numbers."""

from typing import Any

import pytest

from pulse_core.checks.outcomes import (
    CheckOutcome,
    FileStatus,
    is_source_of,
    of_command,
    of_file,
    of_lines,
    of_page,
    of_vital,
)
from pulse_core.checks.settings import CheckSettings
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.commands import CommandAnswer
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.projections.logs import Logs, LogSource, MatchBatch

SECOND = 1_000_000
NOW = Moment(10**15, "boot", 10_000 * SECOND)
URL = "http://127.0.0.1:80/"


def check(**said: Any) -> CheckSettings:
    return CheckSettings.model_validate({"name": "it", **said})


def test_a_command_is_well_if_it_exits_with_0() -> None:
    assert of_command(CommandAnswer(True, "well", 0, 5.0)) == (
        0,
        "well",
        {"latency_ms": 5.0, "exit": 0},
        False,
    )
    assert of_command(CommandAnswer(False, "bad", 3, 5.0)) == (
        1,
        "bad",
        {"latency_ms": 5.0, "exit": 3},
        False,
    )
    assert of_command(CommandAnswer(False, "late", None, 9.0)).numbers == {"latency_ms": 9.0}
    assert of_command(CommandAnswer(None, "no such program")) == (None, "no such program", {}, False)


@pytest.mark.parametrize(
    ("result", "value", "words"),
    [
        (ProbeResult(took_ms=5.0, status=204), 0, f"{URL} answers 204"),
        (ProbeResult(took_ms=5.0, status=503), 1, f"{URL} answers 503"),
        (ProbeResult(Trouble.REFUSED, "nobody listens"), 1, f"{URL}: nobody listens"),
        (ProbeResult(Trouble.BODY, "it lacks that", status=200), 1, f"{URL}: it lacks that"),
        (ProbeResult(Trouble.UNASKED, "no child"), None, "it could not be asked: no child"),
    ],
)
def test_a_page_is_well_if_its_answer_is(result: ProbeResult, value: float | None, words: str) -> None:
    found = of_page(check(http=URL), result)
    assert (found.value, found.words) == (value, words)
    assert ("status" in found.numbers) == (result.status is not None and value is not None)


def file(status: FileStatus | None, **said: Any) -> CheckOutcome:
    return of_file(check(file="/x", **said), status, NOW)


STATUS = FileStatus(3 << 30, NOW.at - 7_200 * SECOND)


@pytest.mark.parametrize(("missing", "gone", "there"), [("bad", 1, 0), ("good", 0, 0), ("wanted", 0, 1)])
def test_what_it_means_that_a_file_is_not_there(missing: str, gone: float, there: float) -> None:
    assert file(None, missing=missing) == (gone, "/x is not there", {}, False)
    assert file(STATUS, missing=missing)[:2] == (there, "/x is there")


@pytest.mark.parametrize(
    ("said", "value", "words"),
    [
        ({"age_over": "1h"}, 7200, "/x was changed 2 h ago (good: under 1 h)"),
        ({"age_under": "3h"}, 7200, "/x was changed 2 h ago (good: over 3 h)"),
        ({"size_over": "2G"}, 3 << 30, "/x has 3.0 GiB (good: under 2G)"),
        ({"size_under": "1K"}, 3 << 30, "/x has 3.0 GiB (good: over 1K)"),
    ],
)
def test_the_age_and_the_size_of_a_file_are_measured(said: dict[str, str], value: float, words: str) -> None:
    assert file(STATUS, **said) == (value, words, {"age_s": 7200.0, "size_bytes": 3 << 30}, True)


def test_a_file_from_the_future_was_changed_just_now() -> None:
    assert file(FileStatus(1, NOW.at + SECOND), age_over="1h").value == 0


def test_matching_lines_are_counted_by_what_the_log_has_recorded() -> None:
    def batch(seconds: int, number: int) -> MatchBatch:
        return MatchBatch(NOW.plus(-seconds * SECOND), "error", number, f"ERROR {seconds} s ago")

    logs = Logs(
        {
            "/log/a.log": LogSource({}, (batch(90, 100), batch(50, 2), batch(10, 1))),
            "/log/b.log": LogSource({}, (batch(60, 4),)),
            "/log/b/c.log": LogSource({}, (batch(1, 50),)),
        }
    )
    one = check(log="/log/*.log", lines=5, within="1m")
    found = of_lines(one, logs, NOW, None)
    assert (found.value, found.numbers) == (7, {"lines": 7})
    assert found.words == "7 matching lines in /log/*.log within 1 min: ERROR 10 s ago (good: under 5)"
    again = of_lines(
        check(log="/log/*.log", lines=5, within="1m", then="restart web"), logs, NOW, NOW.plus(-20 * SECOND)
    )
    assert (again.value, again.words) == (
        1,
        "1 matching line in /log/*.log since the start of web, 20 s ago: ERROR 10 s ago (good: under 5)",
    )
    assert of_lines(one, logs, NOW, NOW.plus(-70 * SECOND)).words == found.words
    counted = LogSource({}, (batch(50, 2), MatchBatch(NOW, "error", 99, "")))
    found = of_lines(one, Logs({"/log/a.log": counted}), NOW, None)  # of a storm most are only counted
    assert found.words == "101 matching lines in /log/*.log within 1 min: ERROR 50 s ago (good: under 5)"
    assert of_lines(one, Logs(), NOW, None)[:2] == (
        0,
        "0 matching lines in /log/*.log within 1 min (good: under 5)",
    )


@pytest.mark.parametrize(
    ("log", "source", "is_one"),
    [
        ("/log/a.log", "/log/a.log", True),
        ("/log/*.log", "/log/a.log", True),
        ("/log/*.log", "/log/deep/a.log", False),
        ("~/log/*.log", "/home/me/log/a.log", True),
        ("a.service", "a.service", True),
        ("a.service", "user:a.service", True),
        ("a.service", "b.service", False),
    ],
)
def test_whose_lines_count(log: str, source: str, is_one: bool) -> None:
    assert is_source_of(check(log=log), source) == is_one


def window(key: str, **data: Any) -> tuple[str, Window]:
    return key, Window((Sample(1, key, NOW, data),))


def test_a_vital_is_what_the_newest_sample_says() -> None:
    one = check(vital="system-resource.disks./srv.data.used", over=0.9)
    found = of_vital(one, [window("system-resource", disks={"/srv.data": {"used": 0.93456789}})])
    assert found == (0.93456789, f"{one.vital} is 0.934568 (good: under 0.9)", {"value": 0.93456789}, True)
    assert (
        of_vital(check(vital="checks.other.ok", under=0), [window("checks", other={"ok": False})]).value == 0
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [(67_674_112, "67,674,112"), (999_999.6, "1,000,000"), (1234.5, "1,234.5"), (12, "12"), (0.1, "0.1")],
)
def test_a_large_vital_is_told_in_digits(value: float, words: str) -> None:
    one = check(vital="process-usage.web.memory", over=50_000_000)
    found = of_vital(one, [window("process-usage", web={"memory": value})])
    assert found.words == f"{one.vital} is {words} (good: under 50,000,000)"


def test_a_vital_that_nobody_senses_is_told_with_the_nearest_one() -> None:
    one = check(vital="system-resource.memroy", over=0.9)
    found = of_vital(
        one, [window("system-resource", memory=0.5, swap=0.1), ("system-resource.memroy", Window())]
    )
    assert found.value is None
    assert found.words.endswith(
        "nothing senses system-resource.memroy (did you mean 'system-resource.memory'?)"
    )
    assert of_vital(one, [("system-resource", Window())]).value is None
    whole = of_vital(check(vital="checks.big", over=1), [window("checks", big={"ok": True, "size": 3})])
    assert whole.words == "nothing senses checks.big (did you mean 'checks.big.ok'?)"


def test_a_vital_that_only_the_newest_sample_lacks_is_not_told_as_one_that_nobody_senses() -> None:
    """As the memory of a process that was restarted a moment ago."""
    one = check(vital="process-usage.web.memory", over=1)
    (key, window_of_web), (_, late) = (
        window("process-usage", web={"memory": 5.0}),
        window("process-usage", db={"memory": 5.0}),
    )
    assert late.last
    found = of_vital(one, [(key, window_of_web.plus(late.last))])
    assert (found.value, found.words) == (None, "the newest sample of process-usage has no web.memory")
