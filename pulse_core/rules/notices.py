"""Notices of what stands for a while: one when it begins, and one when it is over."""

from collections.abc import Callable, Mapping
from itertools import islice

from pulse_core.actions import NOTIFY
from pulse_core.model.verdict import Verdict
from pulse_core.projections.state import Snapshot
from pulse_core.rules.survival.notices import is_told

MANY = 100
"""Topics of one kind that are told at a time; the others are told in their turn."""


def told_while(
    verdict: Verdict,
    curr: Snapshot,
    beginning: str,
    standing: Mapping[str, str],
    title: Callable[[str], str],
    over: str,
) -> Verdict:
    """The verdict with a notice of each topic that stands and is not told, and of each told one that is over.

    beginning: what these topics, and no others, begin with; standing: what there is to say by the rest of the topic;
    title: the notice's, by that rest, too; over: what to say of one that is over.
    """
    begun = (one for one in curr.notices.of if one.startswith(beginning) and is_told(one, curr))
    told = {one.removeprefix(beginning) for one in begun}
    room = max(0, MANY - len(told & standing.keys()))
    new = islice((of for of in standing if of not in told), room)
    ended = sorted(told - standing.keys())
    news = {of: ({"title": title(of), "text": standing[of], "over": False}, standing[of]) for of in new}
    gone = curr.conditions.unwatched  # what nobody looks at any more, which is not known to be over
    for of in ended:
        head = "no longer watched" if f"{beginning}{of}" in gone else "resolved"
        text = gone.get(f"{beginning}{of}", over)
        news[of] = {"title": f"{head}: {title(of)}", "text": text, "over": True}, f"{head}: {text}"
    return verdict.plus(*(NOTIFY.wish(f"{beginning}{of}", *one) for of, one in news.items()))
