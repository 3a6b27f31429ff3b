"""Incidents as a tree: one branch an episode, newest last."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.text import Text
from rich.tree import Tree

from pulse_core.model.durations import duration_text
from pulse_core.model.moment import iso
from pulse_core.model.names import RESTART_PROCESS, STOP_PROCESS
from pulse_core.model.text import count, one_line, quoted
from pulse_core.projections.incident import without_id
from pulse_core.projections.incidents import PULSE, SENT_TO_SOME
from upulse_cli.time_args import local, local_span, zone

MILLISECOND = timedelta(milliseconds=1)
LAST_RUN = "when a daemon last ran"
OF_A_PROCESS = (RESTART_PROCESS, STOP_PROCESS)
"""Actions of which it is told on which process, in an incident that is not about that one."""
SHOWN = 3
"""Lines that a process printed last which are shown; `--json` has more."""
OUTCOMES = {SENT_TO_SOME: "sent to some of its addresses only"}
"""What became of a measure, in words, where its name in JSON says too little."""


def tree(told: Sequence[Mapping[str, Any]], when: str, since: int = 0, is_present: bool = True) -> Tree:
    """Every incident with what was done about it; when: `since 15:20`, or `in the last 24h`; since: that in UTC
    microseconds; is_present: a daemon runs, so that what is not over is ongoing."""
    if any(one["last_seen"] and one["last_seen"] < iso(since) for one in told):
        when += ", or last seen before and not known to be over"
    drawn = Tree(
        Text(f"{count(len(told), 'incident')} {when}, times in {zone()}", style="bold"),
        guide_style="dim",
    )
    for incident in told:
        head, *more = lines(incident, is_present)
        style = "" if incident["ended"] else "yellow"
        branch = drawn.add(Text.assemble((f"{began(incident)}  ", "dim"), (one_line(head), style)))
        for line in more:
            branch.add(Text(one_line(line)))
    return drawn


def lines(told: Mapping[str, Any], is_present: bool = True) -> Iterator[str]:
    """One incident in words, for a person at three in the morning."""
    verb, lasted = (
        "ended" if told["ended_by"] else "resolved",
        ", ongoing" + ("" if is_present else f" {LAST_RUN}"),
    )
    if told["ended"]:
        whole = _span(told["lasted_ms"], _unsure_ms(told))
        wrong = _span(told["wrong_ms"], told["unsure_ms"])
        is_part = told["wrong_ms"] < told["lasted_ms"] and wrong != whole
        lasted = f", {verb} after {whole}" + (f", wrong for {wrong} of it" if is_part else "")
    if told["lasted_ms"] == 0 and not told["began_after"]:  # as a rollback, which is over at once
        lasted = ""
    if (told["about"], told["subject"], told["times"]) == ("daemon", PULSE, 1) and told["began_after"]:
        lasted = f", last sign of life {local_span(told['began_after'], told['began'], ', found at ')}"
    if told["faded"]:
        lasted = f", not seen again since {local(told['ended'])}"
    elif told["last_seen"]:
        # Lines of a storm are counted every ten seconds, so that this is when the last of them was there already.
        last = "the last by" if told["about"] == "log" else "last at"
        lasted = f", {last} {local(told['last_seen'])}" if told["times"] > 1 else ""
    seen = _seen(told)
    yield f"{told['about']} {told['subject']}{': ' if seen else ''}{seen}{lasted}"
    if len(told["causes"]) > 1:
        yield from map(_cause, told["causes"])
    yield from quoted(told["printed"]).splitlines()[-SHOWN:]
    for measure in told["measures"]:
        outcomes = measure["outcomes"]
        once = len(outcomes) == 1 and list(outcomes.values()) == [1]
        spelled = {OUTCOMES.get(name, name): number for name, number in outcomes.items()}
        ended = ", ".join(name if once else f"{number} {name}" for name, number in spelled.items())
        said = f" ({measure['said']})" if measure["said"] else ""
        what = action = measure["action"]
        if action in OF_A_PROCESS and (key := measure["key"]).startswith(f"{action}:"):
            what = action if key == f"{action}:{told['subject']}" else key
        yield f"{what} {ended}{said}: {measure['reason']}"
    yield from told["delays"]
    if held := told["held"]:
        since = f"since {local(held['since'])}" if is_present else f"from {local(held['since'])} on"
        yield f"held back {since} by {held['by']}"
    yield from told["requests"]
    if told["ended_by"]:
        yield told["ended_by"]
    elif told["helped"] is not None:
        by_whom = "" if told["about"] == "process" else "; whether that helped is not known"
        without = (
            f"recovered after a request{by_whom}" if told["requested"] else "recovered, not by what Pulse did"
        )
        by_itself = without if told["ended"] else f"not recovered {'yet' if is_present else LAST_RUN}"
        yield "recovered" if told["helped"] else by_itself
    elif told["doubt"]:
        yield f"recovered; it is not known by what, {told['doubt']}"


def began(told: Mapping[str, Any]) -> str:
    """When it began, or between when."""
    after = told["began_after"]
    return local_span(after, told["began"]) if after else local(told["began"])


def _unsure_ms(told: Mapping[str, Any]) -> float:
    """For how much longer it may have lasted than is known."""
    first, last = told["began_after"], told["began"]
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)) / MILLISECOND if first else 0


def _span(least_ms: float, unsure_ms: float) -> str:
    """How long it was, or the bounds of that."""
    least = duration_text(least_ms * 1000)
    if unsure_ms and not least_ms:
        return f"at most {duration_text(unsure_ms * 1000)}"
    most = duration_text((least_ms + unsure_ms) * 1000)
    return least if most == least else f"{least} to {most}"


def _seen(told: Mapping[str, Any]) -> str:
    """What was seen, and how often: words that are true of all of it."""
    words, times, causes = str(told["evidence"]), told["times"], told["causes"]
    if times == 1:
        return words
    if told["about"] == "log":
        return f"{words}, one of {count(times, 'line')}"
    if len(causes) > 1:
        known = sum(not cause["unexplained"] for cause in causes)
        # What stands and is seen otherwise, as an endpoint that answers something else, is not wrong once more.
        is_counted = sum(cause["times"] for cause in causes) == times
        of = f", of {count(known, 'cause')}" if known > 1 and is_counted else ""
        unknown = sum(cause["times"] for cause in causes if cause["unexplained"])
        of += f", {unknown} of them of unknown cause" if unknown else ""
        return f"{times} times{of}, the last: {words}"
    varies = causes and causes[0]["varies"]
    return f"{words}, the last of {times} times" if varies else f"{without_id(words)}, {times} times"


def _cause(cause: Mapping[str, Any]) -> str:
    words, times = cause["evidence"], cause["times"]
    if times == 1:
        return f"{local(cause['first'])}  {words}"
    again = f"{words}, the last of" if cause["varies"] else f"{without_id(words)},"
    return f"{local_span(cause['first'], cause['last'])}  {again} {times} times"
