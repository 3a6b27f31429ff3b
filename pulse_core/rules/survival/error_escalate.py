"""Matching log lines were written: notify people once about new ones, and tick faster for a while."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from pulse_core.model.durations import rough_duration
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.verdict import Verdict
from pulse_core.projections import Snapshot
from pulse_core.projections.logs import NOWHERE, QUIET, LogSource, SimilarLines, rank
from pulse_core.rules.onion import Inner, Rule
from pulse_core.rules.survival.log_causes import EXPLAINS, Explains, cause_of
from pulse_core.rules.survival.notices import is_told, notify_over, notify_unless_told, topic_text

TOPIC = STORM = "log:"
"""What topics, and the conditions of storms, begin with; the source follows."""
WATCHER = "error-log"
NOTICE_GAPS = {"warning": 3_600 * US_PER_SECOND, "error": 300 * US_PER_SECOND, "critical": 60 * US_PER_SECOND}
"""How long after a notice other lines of the same source wait for theirs, by severity."""
CLOSER_FOR, CLOSER_MS = 60 * US_PER_SECOND, 1_000
"""For how long after a line that is worse than a warning ticks come faster, and how fast."""
SHOWN, LINE = 5, 300
WORDS = {"warning": "warnings", "error": "errors", "critical": "critical lines"}


class Escalation(NamedTuple):
    """The result for one source: notices, microseconds until it is evaluated again, and why nothing is sent."""

    effects: tuple[Effect, ...] = ()
    wait_us: int | None = None
    notes: tuple[str, ...] = ()


def error_escalate_with(explains: Explains) -> Rule:
    """Make the rule that notifies about log lines, except those that these conditions explain."""

    async def error_escalate(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        """Notify about new kinds of lines, about storms, and when it is quiet again; tick faster after errors."""
        verdict = await inner(prev, curr)
        for name in sources(curr):
            answer = evaluate_source(name, curr, explains)
            verdict = verdict.plus(*answer.effects).noting(*(f"{name}: {note}" for note in answer.notes))
            if answer.wait_us is not None:
                verdict = verdict.within(answer.wait_us // 1000 + 1)
        return verdict

    return error_escalate


error_escalate = error_escalate_with(EXPLAINS)


def sources(curr: Snapshot) -> Sequence[str]:
    """The sources with matching lines, a storm, or an open notice."""
    storms = [name.removeprefix(STORM) for name in curr.conditions.raised if name.startswith(STORM)]
    told = [
        topic.removeprefix(TOPIC)
        for topic, notice in curr.notices.of.items()
        if topic.startswith(TOPIC) and not notice.over
    ]
    lately = [name for name, source in curr.logs.of.items() if _quiet_in(source, curr) > 0]
    return list(dict.fromkeys([*storms, *told, *lately]))


def evaluate_source(name: str, curr: Snapshot, explains: Explains) -> Escalation:
    """Evaluate this source now."""
    source, storm = curr.logs.of.get(name, NOWHERE), curr.conditions[STORM + name]
    quiet_in = _quiet_in(source, curr)
    if quiet_in <= 0 and storm is None:
        words = f"nothing more of it for {rough_duration(QUIET)}; {_lines(source.lines)} in all"
        return Escalation(
            notify_over(TOPIC + name, _title(name, source.alike.values()), words, curr, WATCHER)
        )
    news = [lines for lines in source.alike.values() if _is_news(lines.first, name, curr)]
    causes = [(lines, cause_of(name, lines, curr, explains)) for lines in news]
    held = {cause.why: cause for _, cause in causes if cause is not None}
    answer = _notice_of_lines(name, [lines for lines, cause in causes if cause is None], curr)
    waits = [
        _faster_tick(source, curr),
        quiet_in,
        answer.wait_us,
        *(cause.wait_us for cause in held.values()),
    ]
    wait = min((wait for wait in waits if wait is not None and wait > 0), default=None)
    return Escalation(answer.effects, wait, (*(f"not told: {why}" for why in held), *answer.notes))


def _notice_of_lines(name: str, news: Sequence[SimilarLines], curr: Snapshot) -> Escalation:
    """The notice about new lines, once it is due; or the reminder of what lasts."""
    source, storm = curr.logs.of.get(name, NOWHERE), curr.conditions[STORM + name]
    told = curr.notices[topic_text(TOPIC + name)]
    begun = [lines.first for lines in news]
    if storm is not None and _is_news(storm.since, name, curr):
        begun.append(storm.since)
    elif news and told is not None and not told.over:
        gap = NOTICE_GAPS.get(max((lines.severity for lines in news), key=rank), 0)
        if (left := gap - curr.now.since(told.last)) > 0:
            return Escalation(
                (),
                left,
                (f"told {rough_duration(curr.now.since(told.last))} ago; again in {rough_duration(left)}",),
            )
    if not begun and not is_told(TOPIC + name, curr):
        return Escalation()
    shown = news or tuple(source.alike.values())
    title = f"storm in {name}" if storm else _title(name, shown)
    text = "\n".join([*([f"{storm.evidence}."] if storm else []), *_shown(shown)])
    return Escalation(
        notify_unless_told(
            TOPIC + name, title, text, curr, WATCHER, news=min(begun, key=curr.now.since, default=None)
        )
    )


def _is_news(moment: Moment, name: str, curr: Snapshot) -> bool:
    """Whether what began then came after the last notice about this source."""
    told = curr.notices[topic_text(TOPIC + name)]
    return told is None or told.over or curr.now.since(moment) < curr.now.since(told.last)


def _quiet_in(source: LogSource, curr: Snapshot) -> int:
    """Microseconds until this source counts as quiet; 0 or less if it does."""
    return QUIET - curr.now.since(source.last) if source.last is not None else 0


def _faster_tick(source: LogSource, curr: Snapshot) -> int | None:
    """The microseconds after which to tick again, after a line worse than a warning."""
    if source.last is None or rank(source.seen[-1].severity) == 0:
        return None
    return CLOSER_MS * 1_000 if curr.now.since(source.last) < CLOSER_FOR else None


def _title(name: str, lines: Collection[SimilarLines]) -> str:
    worst = max((one.severity for one in lines), key=rank, default="error")
    return f"{WORDS.get(worst, worst)} in {name}"


def _shown(lines: Sequence[SimilarLines]) -> Iterator[str]:
    """Describe the lines, the worst and newest first."""
    worst = sorted(lines, key=lambda one: rank(one.severity))[::-1]
    for one in worst[:SHOWN]:
        yield f"{one.line[:LINE]}{f' ({one.number} times)' if one.number > 1 else ''}"
    if len(worst) > SHOWN:
        yield f"and {len(worst) - SHOWN} others"


def _lines(number: int) -> str:
    return "1 line" if number == 1 else f"{number} lines"
