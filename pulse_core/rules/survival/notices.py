"""Effects of survival rules, and their notices: once, a reminder after a while, and when it is over."""

from collections.abc import Mapping

from pulse_core.actions import is_known
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect
from pulse_core.model.moment import Moment
from pulse_core.model.names import NOTIFY
from pulse_core.model.text import encodable
from pulse_core.projections.notices import DEFAULT_SEVERITY, HOUR, PREFIX
from pulse_core.projections.state import Snapshot

DAY = 24 * HOUR
TOPIC, TITLE, TEXT = 400, 450, 10_000
"""Characters; longer texts are cut, since a notice that is refused reaches nobody."""
SEVERITIES = {
    **dict.fromkeys(("flapping", "safe-mode", "engine"), "critical"),
    **dict.fromkeys(("resource:unwritten", "resource:log-gone", "resource:log-damaged"), "critical"),
    "network:quality": "warning",
    **dict.fromkeys(("network", "llm", "resource:engine-missing"), "error"),
}
"""How severe notices are by the beginning of their topic; others are warnings."""


def survival_effect(
    action: str, key: str, params: Mapping[str, Json], reason: str, samples: tuple[int, ...] = ()
) -> Effect:
    """An effect that a survival rule requests. samples: ids of those that are its evidence."""
    return Effect(action=action, key=key, params=dict(params), reason=reason, survival=True, samples=samples)


def notify_unless_told(
    topic: str,
    title: str,
    text: str,
    curr: Snapshot,
    *keys: str,
    news: Moment | None = None,
    printed: str = "",
    severity: str = "",
    was_well: bool = False,
) -> tuple[Effect, ...]:
    """A notice, unless one about this topic was sent and no reminder is due yet.

    keys: the watchers whose newest samples are the notice's evidence; news: since when there is something new, so
    that a notice is sent again if the last one is older; printed: what a process printed, under its heading;
    severity: if not that of the topic; was_well: whether it was well since the last one, though not for long enough.
    """
    told = curr.notices[topic_text(topic)]
    later = told is not None and news is not None and curr.now.since(told.last) > curr.now.since(news)
    if told is not None and not told.over and not later:
        if is_known(topic_text(topic), curr):
            return ()
        title = f"{'again' if was_well else 'still'}: {title}"
    return (_notice(topic, title, text, curr, keys, severity or severity_of(topic), printed),)


def notify_over(
    topic: str, title: str, text: str, curr: Snapshot, *keys: str, unwatched: str = ""
) -> tuple[Effect, ...]:
    """The notice that it is over, if one was sent that it had begun.

    unwatched: why nobody looks at it any more, in words: then it is not known to be over, and that is the text.
    """
    told = curr.notices[topic_text(topic)]
    if told is None or told.over:
        return ()
    ended = "no longer watched" if unwatched else "resolved"
    how = {"over": True, "unwatched": True} if unwatched else {"over": True}
    title, text = f"{ended}: {title}", unwatched or text
    return (_notice(topic, title, text, curr, keys, told.severity, "", ended, **how),)


def notify_once(
    topic: str, title: str, text: str, curr: Snapshot, at: Moment, severity: str, pause: int = 0
) -> tuple[Effect, ...]:
    """A notice of what happened at this moment, unless that was told or was more than a day ago.

    pause: microseconds that it waits at least after the last one.
    """
    told, age = curr.notices[topic], curr.now.since(at)
    told_ago = curr.now.since(told.last) if told else DAY
    if age >= DAY or told_ago <= age or told_ago < pause:
        return ()
    return (_notice(topic, title, text, curr, (), severity, once=True),)


def severity_of(topic: str) -> str:
    """How severe notices of a topic are: what keeps Pulse, or a process for good, from its work is critical."""
    found = next((one for start, one in SEVERITIES.items() if (topic + ":").startswith(start + ":")), None)
    return found or DEFAULT_SEVERITY


def is_told(topic: str, curr: Snapshot) -> bool:
    """Whether a notice about it was sent, and none yet that it is over."""
    told = curr.notices[topic_text(topic)]
    return told is not None and not told.over


def topic_text(topic: str) -> str:
    """The topic as it is written in a key: on one line, and cut; it may hold the name of a file."""
    text = topic if topic.isprintable() else "".join(one if one.isprintable() else "?" for one in topic)
    return text[:TOPIC]


def _notice(
    topic: str,
    title: str,
    text: str,
    curr: Snapshot,
    keys: tuple[str, ...],
    severity: str,
    printed: str = "",
    ended: str = "",
    **more: bool,
) -> Effect:
    """ended: how what was told of has ended; else its reason reads like that of the notice that it had begun."""
    whole = f"{text}\n{printed}" if printed else text
    params = {
        "title": encodable(title)[:TITLE],
        "text": encodable(whole)[:TEXT],
        "severity": severity,
        **more,
    }
    reason = f"{ended}: {text}" if ended and text else ended or text
    return survival_effect(
        NOTIFY, PREFIX + topic_text(topic), params, reason, curr.samples(*keys) if keys else ()
    )
