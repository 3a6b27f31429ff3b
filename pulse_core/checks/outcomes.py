"""What one look of a check has found, in words and numbers. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pulse_core.checks.settings import CheckSettings
from pulse_core.model.durations import duration_text
from pulse_core.model.errors import hint
from pulse_core.model.glob import glob_matches
from pulse_core.model.json_types import Json
from pulse_core.model.moment import US_PER_SECOND, Moment
from pulse_core.model.text import count, format_number, format_size
from pulse_core.model.vitals import Window, numbers
from pulse_core.ports.commands import CommandAnswer
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.projections.logs import Logs
from pulse_core.settings.probes import is_status_in

NO_NUMBERS: Mapping[str, Json] = {}
SHOWN = 200
"""Characters of a line that are told."""


class CheckOutcome(NamedTuple):
    """What was found. value: what the check's bound is about, if that `is_measured`, or else 1 if it is bad and 0 if it is
    well; None if nobody could look; words: what is there, or why nobody could; numbers: for the sample."""

    value: float | None
    words: str
    numbers: Mapping[str, Json] = NO_NUMBERS
    is_measured: bool = False


class FileStatus(NamedTuple):
    """A file's size in bytes, and when it was last changed, UTC microseconds."""

    size: int
    changed: int


def of_command(result: CommandAnswer) -> CheckOutcome:
    """What a command's end means."""
    if result.ok is None:
        return CheckOutcome(None, result.words)
    numbers: dict[str, Json] = {"latency_ms": result.took_ms}
    return CheckOutcome(
        not result.ok, result.words, numbers | ({} if result.exit is None else {"exit": result.exit})
    )


def of_page(check: CheckSettings, result: ProbeResult) -> CheckOutcome:
    """What the answer to a request means."""
    if result.trouble is Trouble.UNASKED:
        return CheckOutcome(None, f"it could not be asked: {result.detail}")
    numbers: dict[str, Json] = {"latency_ms": result.took_ms}
    if result.status is not None:
        numbers["status"] = result.status
    if result.trouble:
        return CheckOutcome(True, f"{check.http}: {result.detail}", numbers)
    is_good = is_status_in(check.http_status, result.status or 0)
    return CheckOutcome(not is_good, f"{check.http} answers {result.status}", numbers)


def of_file(check: CheckSettings, status: FileStatus | None, now: Moment) -> CheckOutcome:
    """What is to be said of a file; status: None if it is not there."""
    if status is None:
        return CheckOutcome(check.missing == "bad", f"{check.file} is not there")
    age_us = max(0, now.at - status.changed)
    numbers = {"age_s": round(age_us / US_PER_SECOND, 3), "size_bytes": status.size}
    if age := check.age_over or check.age_under:
        words = f"{check.file} was changed {duration_text(age_us)} ago"
        return _measured(check, age_us / US_PER_SECOND, words, duration_text(age), numbers)
    if size := check.size_over or check.size_under:
        return _measured(check, status.size, f"{check.file} has {format_size(status.size)}", size, numbers)
    return CheckOutcome(check.missing == "wanted", f"{check.file} is there", numbers)


def is_source_of(check: CheckSettings, source: str) -> bool:
    """Whether this is a source (a file's path, or a unit's name) of the [[log]] that the check names."""
    wanted = check.log or ""
    if wanted.startswith("~/"):
        return glob_matches(f"*{wanted[1:]}", source)
    is_alike = source.count("/") == wanted.count("/") and glob_matches(wanted, source)
    return is_alike or wanted == source.removeprefix("user:")


def of_lines(check: CheckSettings, logs: Logs, now: Moment, after: Moment | None) -> CheckOutcome:
    """What the matching lines of late mean. after: those of before don't count."""
    span = min(check.within, now.since(after) if after else check.within)
    seen = [batch for name, source in logs.of.items() if is_source_of(check, name) for batch in source.seen]
    late = [batch for batch in seen if now.since(batch.moment) <= span]
    lines = sum(batch.number for batch in late)
    asked = f"within {duration_text(check.within)}"
    if after and span < check.within:
        what = f"the start of {check.restart}" if check.restart else "its command was run"
        asked = f"since {what}, {duration_text(span)} ago"
    words = f"{count(lines, 'matching line')} in {check.log} {asked}"
    if told := [batch for batch in late if batch.line]:  # of a storm most are only counted
        words = f"{words}: {min(told, key=lambda batch: now.since(batch.moment)).line[:SHOWN]}"
    return _measured(check, lines, words, str(check.lines), {"lines": lines})


def senses_of(check: CheckSettings) -> Sequence[str]:
    """The senses that may have its vital: their names may have dots themselves."""
    words = (check.vital or "").split(".")
    return [".".join(words[:number]) for number in range(1, len(words))]


def of_vital(check: CheckSettings, senses: Iterable[tuple[str, Window]]) -> CheckOutcome:
    """What a sensed number means. senses: those whose name the number's begins with, and what they have sensed."""
    name, known = check.vital or "", set[str]()
    for sense, window in senses:
        if window.last is None:
            continue
        field = name.removeprefix(f"{sense}.")
        value = next(iter(Window((window.last,)).values(field)), None)
        if isinstance(value, int | float):
            bound = format_number((check.under if check.over is None else check.over) or 0)
            return _measured(check, value, f"{name} is {format_number(value)}", bound, {"value": value})
        if any(isinstance(earlier, int | float) for earlier in window.values(field)):
            return CheckOutcome(None, f"the newest sample of {sense} has no {field}")
        known |= {each for each, _ in numbers(window.last.data, sense)}
    return CheckOutcome(None, f"nothing senses {name}{hint(name, known)}")


def _measured(
    check: CheckSettings, value: float, words: str, bound: str, numbers: Mapping[str, Json]
) -> CheckOutcome:
    """What was measured, in words with the bound."""
    side = "over" if check.bound and check.bound.below else "under"
    return CheckOutcome(value, f"{words} (good: {side} {bound})", numbers, is_measured=True)
