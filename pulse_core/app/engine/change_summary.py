"""Summarizes how two revisions' effects differ, short enough to be recorded."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter

from pulse_core.app.engine.effect_diff import EffectDifference, WishedEffect, differences
from pulse_core.app.engine.replay import Replay
from pulse_core.model.text import are, count, one_line

MOST = 1_900
"""Characters; a recorded text is cut a little later."""
EXAMPLES, WORDS = 2, 110


def changes_in_words(old: Replay, new: Replay, changed: Collection[str]) -> str:
    """One line for the whole; which rules came, went or were edited; then rule by rule what is wished, with examples.

    changed: the files that are not the same in the two commits.
    """
    found = differences(old.wishes, new.wishes)
    lines = [
        f"{count(new.ticks, 'tick')}: {summary(found)}",
        *rules(old, new, changed),
        *(line for block in rule_sections(found) for line in block),
    ]
    return "\n".join(limit_lines(lines))


def excess_in_words(old: Replay, new: Replay, most: int) -> str:
    """Why the new rules would do too much: in an hour more than `most` effects beyond the old ones'; empty if not."""
    hours = Counter(hour_of(wish) for wish in new.wishes)
    hours.subtract(hour_of(wish) for wish in old.wishes)
    hour, number = max(hours.items(), key=itemgetter(1), default=("", 0))
    if number <= most:
        return ""
    sources = Counter((wish.rule, wish.action) for wish in new.wishes if hour_of(wish) == hour)
    sources.subtract((wish.rule, wish.action) for wish in old.wishes if hour_of(wish) == hour)
    (rule, action), times = sources.most_common(1)[0]
    when = f"in an hour (that of {hour.replace('T', ' ')}:00Z)"
    return (
        f"{count(number, 'effect')} more than now {when}; {most:,} {are(most)} allowed\n"
        f"most of them by the rule {rule!r}: {action} {count(times, 'time')}\n"
        "if that is meant: --skip replay --why WORDS, or raise [engine] new_effects_per_hour"
    )


def hour_of(wish: WishedEffect) -> str:
    """The hour in which an effect is wished, as the beginning of its time in UTC."""
    return wish.at[:13]


def summary(found: Sequence[EffectDifference]) -> str:
    """All differences in a few words."""
    come = sum(one.only == "new" for one in found)
    gone = len(found) - come
    words = [
        f"{count(number, 'effect')} {what}"
        for number, what in ((come, "newly requested"), (gone, "no longer requested"))
        if number
    ]
    return ", ".join(words) or "nothing changes"


def rules(old: Replay, new: Replay, changed: Collection[str]) -> Iterator[str]:
    """The rules that are not the same; edited are those whose file is.

    Where a rule is defined is the word of its host, and may be any text: no file is opened by it.
    """
    edited = [name for name in new.defined if new.defined[name].rpartition(":")[0] in changed]
    for what, names in (
        ("new rules", [name for name in new.defined if name not in old.defined]),
        ("rules gone", [name for name in old.defined if name not in new.defined]),
        ("rules edited", [name for name in edited if name in old.defined]),
    ):
        if names:
            yield shorten_line(f"{what}: {', '.join(names)}")


def rule_sections(found: Sequence[EffectDifference]) -> Iterator[Sequence[str]]:
    """Rule by rule, who has most of it first: how often something is wished, from when to when, and a few examples."""
    groups: dict[tuple[str, str], list[WishedEffect]] = defaultdict(list)
    for one in found:
        groups[one.wish.rule, one.only].append(one.wish)
    for (rule, only), wishes in sorted(groups.items(), key=lambda group: -len(group[1])):
        sign, what = ("+", "newly requested") if only == "new" else ("-", "no longer requested")
        first, last = utc_text(wishes[0].at), utc_text(wishes[-1].at)
        span = f"at {first}" if len(wishes) == 1 else f"from {first} to {last}"
        examples = (
            f"    {utc_text(one.at)} {one.action} {one.key}: {one.reason}" for one in wishes[:EXAMPLES]
        )
        yield [
            shorten_line(line)
            for line in (f"{sign} {rule} {count(len(wishes), 'time')} {what}, {span}", *examples)
        ]


def utc_text(at: str) -> str:
    """A time in UTC, to the second: who reads it later may be elsewhere."""
    return f"{at[:19].replace('T', ' ')}Z"


def shorten_line(line: str) -> str:
    """The line, cut where it is long."""
    indent = line[: len(line) - len(line.lstrip())]
    text = one_line(line.strip())
    return indent + (text if len(text) <= WORDS else f"{text[: WORDS - 1]}…")


def limit_lines(lines: Sequence[str]) -> Iterator[str]:
    """As many lines as there is room for."""
    room = MOST
    for number, line in enumerate(lines):
        if (room := room - len(line) - 1) < 0:
            yield f"… {count(len(lines) - number, 'line')} more; upulse replay tells all"
            return
        yield line
