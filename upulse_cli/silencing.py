"""Silences as commands see them: which hold now, which come again, and what a pattern would hold back."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pulse_adapters.config.home import Home
from pulse_core.model.durations import spell_duration
from pulse_core.model.errors import Ambiguous, PulseError, UnknownName, hint
from pulse_core.model.moment import US_PER_SECOND, Moment, iso
from pulse_core.projections import Silence, State
from pulse_core.projections.notices import PREFIX
from pulse_core.rules.survival.silence import next_start, remaining
from pulse_core.settings import Settings, SilenceSettings

SHORTEST = 6
"""Characters at the end of an id that may stand for it: the beginning is shared by all of one minute."""

OF_A_PROCESS = ("restart-process:{}", "stop-process:{}", "notify:flapping:{}", "notify:stop:{}")


def standing(home: Home) -> Mapping[str, Any]:
    """`silences`: those that a person added and that hold, oldest first; `recurring`: those of the settings."""
    from pulse_adapters.host.clock import SystemClock
    from pulse_core.app.state import current_state, settings_for
    from upulse_cli.wiring.home import home_context

    facts, now = current_state(home_context(home)), SystemClock().now()
    settings, _ = settings_for(home_context(home), facts)
    return {
        "silences": [told(id_, silence, now) for id_, silence in facts.silences.holding(now).items()],
        "recurring": [recurring(window, now.at) for window in settings.silence],
    }


def told(id_: str, silence: Silence, now: Moment) -> Mapping[str, Any]:
    """A silence as JSON values; `ends` is when it will by the present clock."""
    left = silence.left(now)
    return {
        "id": id_,
        "match": silence.match,
        "since": iso(silence.moment.at),
        "ends": iso(now.at + left),
        "left_s": left / US_PER_SECOND,
        "by": silence.by,
        "why": silence.why,
    }


def recurring(window: SilenceSettings, at: int) -> Mapping[str, Any]:
    """A recurring silence as JSON values; `next` is when it begins the next time."""
    left = remaining(window, at)
    return {
        "match": window.match,
        "days": list(window.days),
        "at": window.at,
        "for": spell_duration(window.for_),
        "active": left > 0,
        "left_s": left / US_PER_SECOND,
        "next": iso(next_start(window, at)),
        "why": window.why,
    }


def meant(silences: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The silence of this id, or the only one whose id begins or ends so; raises UnknownName or Ambiguous."""
    found = [one for one in silences if one["id"].startswith(name) or _ends(one["id"], name)] if name else []
    if len(found) > 1:
        raise Ambiguous("silence", name, [one["id"] for one in found])
    if found:
        return found[0]
    if not silences:
        raise PulseError(f"no silence {name!r}: none holds at this time")
    raise UnknownName("silence", name, [one["id"] for one in silences])


def _ends(id_: str, name: str) -> bool:
    return len(name) >= SHORTEST and id_.endswith(name)


def unheard_of(home: Home, pattern: str) -> str:
    """What is to be said of a pattern that fits nothing that is known; nothing if it fits something."""
    from pulse_core.app.state import current_state, settings_for
    from upulse_cli.wiring.home import home_context

    facts = current_state(home_context(home))
    settings, _ = settings_for(home_context(home), facts)
    known = set(known_keys(facts, settings))
    if any(fnmatchcase(key, pattern) for key in known):
        return ""
    return f"{pattern!r} fits nothing so far: no effect had such a key, and no guarded process would{hint(pattern, known)}"


def known_keys(facts: State, settings: Settings) -> Iterator[str]:
    """Keys that effects have, had lately, or could have."""
    yield from facts.effects.keys
    yield from facts.effects.settled_at
    yield from (PREFIX + topic for topic in facts.notices.of)
    for process in settings.process:
        yield from (key.format(process.name) for key in OF_A_PROCESS)
