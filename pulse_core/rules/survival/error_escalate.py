"""Matching log lines were written: notify people once about new ones, and tick faster for a while.

Lines may have a cause: the death of the process that wrote them, or a raised condition. Once people are notified about
the cause, or it is repaired, its symptoms need no notice. Critical lines always do.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from pulse_core.model.durations import duration_text
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.names import DEGRADED, NETWORK, NOTICE_SEVERITIES, SLOW
from pulse_core.model.text import count
from pulse_core.model.verdict import NEVER_MS, Verdict
from pulse_core.projections.logs import ALIKE, NOWHERE, QUIET, LogSource, SimilarLines, rank
from pulse_core.projections.notices import Notice
from pulse_core.projections.state import Snapshot
from pulse_core.rules.onion import Inner, Rule
from pulse_core.rules.survival.notices import is_told, notify_over, notify_unless_told, topic_text
from pulse_core.settings.processes import ProcessSettings

TOPIC = STORM = "log:"
"""What topics, and the conditions of storms, begin with; the source follows."""
MOST, OTHERS = 20, TOPIC + "*"
"""Sources that are told of each by itself, the worst ones first, and the topic of all others: a tick stays short."""
WATCHER = "error-log"
NOTICE_GAPS = {"warning": 3_600 * US_PER_SECOND, "error": 300 * US_PER_SECOND, "critical": 60 * US_PER_SECOND}
"""How long after a notice other lines of the same source wait for theirs, by severity."""
CLOSER_FOR, CLOSER_US = 60 * US_PER_SECOND, 1 * US_PER_SECOND
"""For how long after a line that is worse than a warning ticks come faster, and how fast."""
SHOWN, LINE = 5, 300
WORDS = {"warning": "warnings", "error": "errors", "critical": "critical lines"}

SETTLE = 1 * US_PER_SECOND
"""How long it takes until the death of the process that wrote these lines is recorded."""
AFTERMATH = 30 * US_PER_SECOND
"""How long after a condition is cleared lines may still be caused by it."""
LEAD = 60 * US_PER_SECOND
"""How long before a condition is first seen lines may be caused by it: it is looked for only from time to time."""

Explains = Sequence[tuple[tuple[str, ...], re.Pattern[str]]]
"""Prefixes of condition names, and the lines that these conditions explain."""

EXPLAINS: Explains = (
    (
        (NETWORK,),
        re.compile(
            r"connect|timed? ?out|timeout|unreachable|no route|resolv|\bdns\b|getaddrinfo|name or service|network",
            re.IGNORECASE,
        ),
    ),
    (("disk:", "inodes:"), re.compile(r"no space|disk (?:is )?full|enospc|errno 28|quota", re.IGNORECASE)),
    (("memory", "swap"), re.compile(r"memory|\boom\b|enomem|errno 12", re.IGNORECASE)),
)
"""The lines that the core's own conditions explain."""
_NO_CAUSE = frozenset({SLOW, DEGRADED})


def error_escalate_with(explains: Explains) -> Rule:
    """Make the rule that notifies about log lines, except those that these conditions explain."""

    async def error_escalate(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        """Notify about new kinds of lines, about storms, and when it is quiet again; tick faster after errors."""
        verdict = await inner(prev, curr)
        names = sources(curr)
        if len(names) > MOST:
            names = sorted(names, key=lambda name: -_severity(curr.logs.of.get(name, NOWHERE)))
        known = [(_known_conditions(begin, curr), about) for begin, about in explains] if names else ()
        own = [evaluate_source(name, curr, known) for name in names[:MOST]]
        effects = (effect for one in own for effect in one.effects)
        verdict = verdict.plus(*effects, *_notice_of_others(names[MOST:], curr))
        verdict = verdict.noting(*(note for one in own for note in one.notes))
        return verdict.within(min((one.tick_ms for one in own), default=NEVER_MS))

    return error_escalate


error_escalate = error_escalate_with(EXPLAINS)


def sources(curr: Snapshot) -> Sequence[str]:
    """The sources with matching lines, a storm, or an open notice."""
    storms = [name.removeprefix(STORM) for name in curr.conditions.raised if name.startswith(STORM)]
    told = [
        topic.removeprefix(TOPIC)
        for topic, notice in curr.notices.of.items()
        if topic.startswith(TOPIC) and topic != OTHERS and not notice.over
    ]
    # They stand in the order in which they matched last.
    first = bisect_left(tuple(curr.logs.of.values()), True, key=lambda source: _quiet_in(source, curr) > 0)
    lately = islice(curr.logs.of, first, None)
    if not curr.logs.of.keys() >= set(told):
        # A topic is written otherwise than its source, where that can't be shown: one of both is enough.
        names = {topic_text(name): name for name in (*curr.logs.of, *storms)}
        told = [names.get(name, name) for name in told]
    return list(dict.fromkeys([*storms, *told, *lately]))


def evaluate_source(name: str, curr: Snapshot, explains: Explains) -> Verdict:
    """The verdict on this source: notices, when to evaluate it again, and why nothing is sent.

    explains: with the names of the conditions that are known, found once for all lines.
    """
    source, storm = curr.logs.of.get(name, NOWHERE), curr.conditions[STORM + name]
    quiet_in = _quiet_in(source, curr)
    if quiet_in <= 0 and storm is None:
        words = f"nothing more of it for {duration_text(QUIET)}; {count(source.lines, 'line')} in all"
        return Verdict(notify_over(TOPIC + name, _title(name, source.alike.values()), words, curr, WATCHER))
    told = curr.notices[topic_text(TOPIC + name)]
    new = [lines for lines in source.alike.values() if _is_news(lines.first, told, curr)]
    process = writing_process(name, curr.settings.process) if new else None
    causes = [(lines, cause_of(process, lines, curr, explains)) for lines in new]
    held = {cause.why: cause for _, cause in causes if cause is not None}
    verdict = Verdict().after_wait(quiet_in if quiet_in > 0 else None).after_wait(_faster_tick(source, curr))
    for cause in held.values():
        verdict = verdict.after_wait(cause.wait_us).noting(f"{name}: not told: {cause.why}")
    return verdict.merged(_notice_of_lines(name, [lines for lines, cause in causes if cause is None], curr))


def _notice_of_lines(name: str, news: Sequence[SimilarLines], curr: Snapshot) -> Verdict:
    """The notice about new lines, once it is due; or the reminder of what lasts."""
    source, storm = curr.logs.of.get(name, NOWHERE), curr.conditions[STORM + name]
    told = curr.notices[topic_text(TOPIC + name)]
    begun = [lines.first for lines in news]
    if storm is not None and _is_news(storm.since, told, curr):
        begun.append(storm.since)
    elif news and told is not None and not told.over:
        age = curr.now.since(told.last)
        gap = NOTICE_GAPS.get(max((lines.severity for lines in news), key=rank), 0)
        if (left := gap - age) > 0:
            note = f"{name}: told {duration_text(age)} ago; again in {duration_text(left)}"
            return Verdict(notes=(note,)).after_wait(left)
    came = told and source.last and curr.now.since(source.last) < curr.now.since(told.last)
    if not begun and not (is_told(TOPIC + name, curr) and (storm or came)):  # a reminder says that it goes on
        return Verdict()
    shown = news or tuple(source.alike.values())
    title = f"storm in {name}" if storm else _title(name, shown)
    # More come while it lasts, and it is recorded again only when it is far worse.
    so_far = f"; {count(source.lines, 'line')} in all so far" if storm and storm.since not in begun else ""
    text = "\n".join([*([f"{storm.described(curr.now)}{so_far}."] if storm else []), *_shown(shown)])
    first = min(begun, key=curr.now.since, default=None)
    worst = max((lines.severity for lines in shown), key=rank, default="error")
    severity = worst if worst in NOTICE_SEVERITIES else "error"
    return Verdict(
        notify_unless_told(TOPIC + name, title, text, curr, WATCHER, news=first, severity=severity)
    )


def _notice_of_others(names: Sequence[str], curr: Snapshot) -> Sequence[Effect]:
    """The notice that there are more sources than are told of by themselves; or that there are no more."""
    title = f"lines in {count(len(names), 'more log')}"
    if not names:
        return notify_over(OTHERS, title, "each log with lines is told of by itself again", curr, WATCHER)
    shown = "\n".join([*names[:SHOWN], *_rest(names)])
    return notify_unless_told(OTHERS, title, shown, curr, WATCHER)


def _is_news(moment: Moment, told: Notice | None, curr: Snapshot) -> bool:
    """Whether what began then came after the last notice about its source."""
    return told is None or told.over or curr.now.since(moment) < curr.now.since(told.last)


def _quiet_in(source: LogSource, curr: Snapshot) -> int:
    """Microseconds until this source counts as quiet; 0 or less if it does."""
    return QUIET - curr.now.since(source.last) if source.last is not None else 0


def _faster_tick(source: LogSource, curr: Snapshot) -> int | None:
    """The microseconds after which to tick again, after a line worse than a warning."""
    if source.last is None or _severity(source) == 0:
        return None
    return CLOSER_US if curr.now.since(source.last) < CLOSER_FOR else None


def _severity(source: LogSource) -> int:
    """How bad its last lines were; 0 if there are none."""
    return rank(source.seen[-1].severity) if source.seen else 0


def _title(name: str, lines: Collection[SimilarLines]) -> str:
    worst = max((one.severity for one in lines), key=rank, default="error")
    return f"{WORDS.get(worst, worst)} in {name}"


def _shown(lines: Sequence[SimilarLines]) -> Iterator[str]:
    """Describe the lines, the worst and newest first."""
    worst = sorted(lines, key=lambda one: rank(one.severity))[::-1]
    for one in worst[:SHOWN]:
        yield f"{one.line[:LINE]}{f' (one of {one.number} alike)' if one.number > 1 else ''}"
    yield from _rest(worst)


def _rest(told: Sequence[object]) -> Iterator[str]:
    """How many there are beyond those that are shown."""
    if (rest := len(told) - SHOWN) > 0:
        yield f"and {count(rest, 'other')}"


# Causes


class Cause(NamedTuple):
    """Why lines need no notice, and microseconds until that may end by itself."""

    why: str
    wait_us: int | None = None


def cause_of(
    process: ProcessSettings | None, lines: SimilarLines, curr: Snapshot, explains: Explains
) -> Cause | None:
    """The cause of these lines, or None; process: the guarded one that writes them, if one does."""
    if lines.severity == "critical":
        return None
    return (_of_process(process, lines, curr) if process else None) or _of_condition(lines, curr, explains)


def writing_process(source: str, processes: Sequence[ProcessSettings]) -> ProcessSettings | None:
    """The guarded process whose log this is: its unit's journal, or `logs/NAME.log` as Pulse itself has it written."""
    for process in processes:
        unit = process.systemd_unit and _full_unit_name(
            f"{'user:' if process.systemd_user else ''}{process.systemd_unit}"
        )
        if unit == _full_unit_name(source) or source.endswith(f"/logs/{process.name}.log"):
            return process
    return None


def _full_unit_name(unit: str) -> str:
    return unit if "." in unit or "/" in unit else f"{unit}.service"


def _of_process(process: ProcessSettings, lines: SimilarLines, curr: Snapshot) -> Cause | None:
    history, now = curr.process(process.name), curr.now
    if history.stop is not None and history.stop.holds(now):
        return Cause(f"{process.name} is stopped on purpose")
    if history.up is None:
        return Cause(f"{process.name} is dead, which is seen to") if history.down is not None else None
    # Lines that came before it was up again; later ones came while it was alive.
    if history.attempts and now.since(lines.last) >= now.since(history.up):
        return Cause(f"{process.name} died of it, or with it, and is up again")
    if (left := SETTLE - now.since(lines.first)) > 0:
        return Cause(f"it is looked whether {process.name} dies of it", left)
    return None


def _of_condition(lines: SimilarLines, curr: Snapshot, explains: Explains) -> Cause | None:
    for names, about in explains:
        # The line is searched last, and once: that takes long, at each tick and for up to 400 lines.
        if (cause := _condition_of(names, lines, curr)) and _is_about(about, lines.line):
            return cause
    return None


def _known_conditions(begin: tuple[str, ...], curr: Snapshot) -> tuple[str, ...]:
    """The conditions whose names begin so: those that are raised, then those that were."""
    known = dict.fromkeys((*curr.conditions.raised, *curr.conditions.cleared))
    return tuple(name for name in known if name.startswith(begin))


def _condition_of(names: tuple[str, ...], lines: SimilarLines, curr: Snapshot) -> Cause | None:
    """The one of these conditions that these lines may have as their cause, by what it is and when."""
    age, known = curr.now.since(lines.first) - LEAD, curr.conditions
    for name, condition in ((name, known.raised[name]) for name in names if name in known.raised):
        is_before = age > curr.now.since(condition.began)
        if condition.state not in _NO_CAUSE and not is_before:
            return Cause(f"explained by {name}, {condition.age(curr.now)}")
    for name, cleared in ((name, known.cleared[name]) for name in names if name in known.cleared):
        since, is_before = curr.now.since(cleared), age > curr.now.since(known.began[name])
        if curr.now.since(lines.last) >= since - AFTERMATH and not is_before:
            return Cause(f"explained by {name}, which was wrong until {duration_text(since)} ago")
    return None


@lru_cache(2 * MOST * ALIKE)
def _is_about(about: re.Pattern[str], line: str) -> bool:
    return about.search(line) is not None
