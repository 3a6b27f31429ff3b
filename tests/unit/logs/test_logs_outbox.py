"""What goes to the daemon, and when."""

from typing import Any

import pytest

from pulse_adapters.logs.line_filter import pattern_from_json
from pulse_adapters.logs.tail import (
    ALL_UNRECORDED,
    COST,
    COUNTED_EVERY,
    GAP,
    LINES,
    TOGETHER,
    UNRECORDED,
    Outbox,
)
from pulse_core.ports.logs import line_cost
from pulse_core.watch.error_log import MAX_COST


class Log:
    """A source whose place is the number of bytes that it gave."""

    def __init__(self, name: str = "/a", rules: tuple[int, ...] = (0,)) -> None:
        self.name, self.rules, self.read = name, rules, 0

    def place(self) -> dict[str, Any]:
        return {"total": self.read}


class Desk:
    """An outbox and what it sent. words: what each rule looks for, a letter each; none: E."""

    def __init__(self, *limits: int, words: str = "") -> None:
        self.sent: list[dict[str, Any]] = []
        rules = [
            pattern_from_json(
                {
                    "keywords": [word],
                    "match": [],
                    "ignore": [],
                    "severity": "error",
                    "lines_per_minute": limit,
                }
            )
            for limit, word in zip(limits, words or "E" * len(limits), strict=True)
        ]
        self.outbox = Outbox(rules, lambda message: self.sent.append(dict(message)))

    def say(self, log: Log, text: str, now: float) -> None:
        log.read += len(text)
        self.outbox.add(log, text.encode(), now)
        self.outbox.flush(now)

    def flood(self, log: Log, text: str, now: float, at_once: int = 1_000) -> None:
        """Read all of it, so many lines at once, and have each message recorded at once."""
        block = b""
        lines = text.encode().splitlines(keepends=True)[::-1]
        while lines or block:
            if not self.outbox.is_full(log):
                block = block or b"".join(lines.pop() for _ in range(min(at_once, len(lines))))
                used = self.outbox.add_part(log, block, now)
                log.read, block = log.read + used, block[used:]
            now += 1.1 * GAP
            before = len(self.sent)
            self.outbox.flush(now)
            self.outbox.recorded(message["source"] for message in self.sent[before:])

    def lines(self, *logs: Log) -> list[str]:
        """What was sent of these, or of all."""
        sent = [
            message for message in self.sent if not logs or message["source"] in {log.name for log in logs}
        ]
        return [line for message in sent for hit in message["hits"] for line in hit[1]]


def test_the_first_line_goes_at_once_with_the_place_behind_its_block() -> None:
    request_handler, log = Desk(600), Log()
    request_handler.say(log, "one\nE two\nthree\n", 100.0)
    assert request_handler.sent == [{"source": "/a", "place": {"total": 16}, "hits": [[0, ["E two"], 1]]}]


def test_lines_that_come_together_go_together() -> None:
    request_handler, log, other = Desk(600), Log(), Log("/b")
    for step in range(20):
        request_handler.say(log, f"E {step}\n", 100 + step / 1_000)
        request_handler.say(other, f"E {step}\n", 100 + step / 1_000)
    assert len(request_handler.sent) == 1
    assert 0 < (request_handler.outbox.flush(100.0199) or 0) <= GAP
    assert (
        request_handler.outbox.flush(100 + GAP) is None or request_handler.outbox.flush(100 + 2 * GAP) is None
    )
    assert sum(hit[2] for message in request_handler.sent for hit in message["hits"]) == 40


def test_over_the_limit_lines_are_only_counted_and_counts_are_rare() -> None:
    request_handler, log = Desk(5), Log()
    for second in range(31):
        request_handler.say(log, "E x\n" * 10, 100.0 + second)
    request_handler.outbox.flush(131.0)
    assert [len(message["hits"][0][1]) for message in request_handler.sent] == [5, 0, 0, 0, 0]
    assert [message["hits"][0][2] for message in request_handler.sent] == [10, 10, 100, 100, 90]
    assert COUNTED_EVERY == 10


def test_each_rule_has_its_own_hits_and_its_own_limit() -> None:
    request_handler, log = Desk(1, 2, words="EF"), Log(rules=(0, 1))
    request_handler.say(log, "E 1\nF 1\nE 2\nF 2\nE 3\nF 3\n", 100.0)
    assert request_handler.sent[0]["hits"] == [[0, ["E 1"], 3], [1, ["F 1", "F 2"], 3]]


def test_no_place_runs_ahead_of_lines_that_wait() -> None:
    request_handler, log, quiet = Desk(1), Log(), Log("/quiet")
    request_handler.say(log, "E 1\nE 2\n", 100.0)
    request_handler.say(log, "E 3\n", 101.0)
    request_handler.say(log, "E 4\n", 102.0)
    request_handler.say(quiet, "nothing\n", 102.0)
    assert request_handler.outbox.places() == {"/quiet": {"total": 8}}
    assert request_handler.outbox.places() == {}
    request_handler.outbox.flush(120.0)
    request_handler.say(log, "nothing\n", 121.0)
    assert request_handler.outbox.places() == {"/a": {"total": 24}}


def test_all_sources_of_a_rule_together_have_a_limit_too_and_their_counts_are_rare() -> None:
    desk, logs = Desk(5), [Log(f"/{number}") for number in range(1_000)]
    for log in logs:
        desk.say(log, "E x\n" * 3, 100.0)
    for tenth in range(700):
        desk.outbox.flush(100.0 + tenth / 10)
    hits = [message["hits"][0] for message in desk.sent]
    assert sum(len(lines) for _, lines, _ in hits) == TOGETHER * 5
    assert sum(count for _, _, count in hits) <= 3_000
    assert all(hit[1] for hit in hits[:1])


def test_counts_of_many_sources_go_one_after_the_other() -> None:
    desk, logs = Desk(0), [Log(f"/{number}") for number in range(100)]
    for log in logs:
        desk.say(log, "E x\n", 100.0)
    assert len(desk.sent) == 1
    for turn in range(1, 100):
        desk.outbox.flush(100.0 + turn * 1.01 * GAP)
    assert len(desk.sent) == 100


def test_of_a_flood_each_message_has_few_lines_and_the_place_behind_them() -> None:
    desk, log = Desk(100_000, 100_000, words="EF"), Log(rules=(0, 1))
    lines = [f"{('fine', 'E', 'F')[number % 3]} {number}\n" for number in range(5_000)]
    desk.flood(log, "".join(lines), 100.0)
    desk.outbox.flush(1_000.0)
    assert max(sum(len(hit[1]) for hit in message["hits"]) for message in desk.sent) <= LINES
    behind = 0
    for message in desk.sent:
        text = "".join(lines)[behind : message["place"]["total"]]
        expected = [[line for line in text.splitlines() if line.startswith(word)] for word in "EF"]
        assert message["hits"] == [
            [rule, matching, len(matching)] for rule, matching in enumerate(expected) if matching
        ]
        behind = message["place"]["total"]
    assert behind == len("".join(lines))


@pytest.mark.parametrize(("length", "number"), [(1, 7_000), (400, 4_000), (2_000, 4_000)])
def test_all_logs_together_cost_no_more_than_can_be_recorded_and_the_rest_is_counted(
    length: int, number: int
) -> None:
    desk, logs = Desk(*[100_000] * 3), [Log(f"/{rule}", rules=(rule,)) for rule in range(3)]
    desk.outbox.share_among({log.name: log for log in logs})
    for log in logs:
        desk.flood(log, f"E{'x' * length}\n" * number, 100.0, at_once=number)
    assert 0.99 * COST < sum(map(line_cost, desk.lines())) <= COST
    desk.outbox.flush(1_000.0)
    assert sum(hit[2] for message in desk.sent for hit in message["hits"]) == 3 * number


def test_a_log_below_its_share_is_told_whatever_louder_ones_have_said_before() -> None:
    loud, quiet, beside = Log(), Log("/quiet"), Log("/beside", rules=(1,))
    desk = Desk(5_000, 5_000)
    desk.outbox.share_among({log.name: log for log in (loud, quiet, beside)})
    desk.flood(loud, "E x\n" * 50_000, 100.0)
    desk.outbox.flush(120.0)
    for second in range(30):
        for log in (quiet, beside):
            desk.say(log, f"E {second}\n", 121.0 + second)
            desk.outbox.flush(121.1 + second)
    expected = [f"E {second}" for second in range(30)]
    assert (desk.lines(quiet), desk.lines(beside)) == (expected, expected)
    assert len(desk.lines(loud)) == 5_000


def test_a_rule_of_many_files_leaves_the_others_their_shares() -> None:
    many, quiet = [Log(f"/many/{number}") for number in range(1_000)], Log("/quiet", rules=(1,))
    desk = Desk(100_000, 100_000)
    desk.outbox.share_among({log.name: log for log in (*many, quiet)})
    for log in many:
        desk.flood(log, "E x\n" * 100, 100.0)
    desk.flood(quiet, "E quiet\n" * 5_000, 100.0)
    assert len(desk.lines(*many)) > 10_000
    assert len(desk.lines(quiet)) == 5_000


def test_nobody_waits_for_the_record_of_what_a_louder_log_has_said() -> None:
    desk, loud, quiet = Desk(100_000), Log(), Log("/quiet")
    text, now = "E x\n" * 10_000, 100.0
    while now < 103.0:
        if not desk.outbox.is_full(loud):
            text = text[desk.outbox.add_part(loud, text.encode(), now) :]
        desk.outbox.flush(now)
        now += GAP / 2
    assert UNRECORDED <= len(desk.sent) + len(desk.lines()) < UNRECORDED + LINES + 1
    assert desk.outbox.flush(now) is None
    desk.say(quiet, "E quiet\n", now)
    assert desk.lines(quiet) == ["E quiet"]
    before = len(desk.lines(loud))
    desk.outbox.recorded([loud.name])
    desk.outbox.flush(now + 2 * GAP)
    assert len(desk.lines(loud)) == before + LINES


def test_a_flood_has_more_on_its_way_than_is_announced_twice_and_than_its_largest_message() -> None:
    desk, log, long = Desk(100_000), Log(), f"E{'x' * 2_000}\n"
    desk.outbox.add(log, (long * (LINES - 1)).encode(), 100.0)
    desk.outbox.add(log, (long * 1_000).encode(), 100.0)
    desk.outbox.flush(101.0)
    assert 1 + sum(map(line_cost, desk.lines())) < UNRECORDED
    assert UNRECORDED > 3 * (MAX_COST + MAX_COST // LINES)


def test_while_much_of_many_logs_is_not_recorded_each_has_one_message() -> None:
    desk, logs = Desk(100_000), [Log(f"/{number}") for number in range(40)]
    now = 100.0
    for _ in range(4):
        for log in logs:
            desk.say(log, "E x\n" * LINES, now)
            now += 1.1 * GAP
            desk.outbox.flush(now)
    total = len(desk.sent) + len(desk.lines())
    assert ALL_UNRECORDED <= total < ALL_UNRECORDED + LINES + 1
    new = Log("/new")
    desk.say(new, "E x\n" * LINES, now + 2 * GAP)
    assert len(desk.lines(new)) == LINES


def test_of_a_message_of_many_lines_some_are_told_and_the_rest_is_counted() -> None:
    desk, log = Desk(100_000), Log()
    desk.say(log, "E x\n" * 10_000, 100.0)
    assert [(len(lines), count) for _, lines, count in desk.sent[0]["hits"]] == [(2 * LINES, 10_000)]
