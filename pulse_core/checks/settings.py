"""What must be well, how that is seen, and what follows when it is not."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from pulse_core.model.durations import UNITS
from pulse_core.model.errors import hint
from pulse_core.model.names import NETWORK, PROCESS_USAGE, RUN_COMMAND, SYSTEM_RESOURCE
from pulse_core.projections.logs import SEEN
from pulse_core.settings.cross_checks import MOST_FAULTS, Disagreement, repeated_names
from pulse_core.settings.groups import (
    Duration,
    Group,
    HttpUrl,
    Regex,
    RootedPath,
    Size,
    size_number,
    text_check,
)
from pulse_core.settings.probes import HTTP_BODY, HTTP_STATUS, Statuses
from pulse_core.settings.processes import Name
from pulse_core.settings.secrets import Argv
from pulse_core.settings.settings_group import NamedTables, SettingsGroup

SECOND, DAY = UNITS["s"], UNITS["d"]
TELL, RESTART = "tell", "restart "
BACK = 0.05
"""The part of its bound by which a number must be back within it before it is well again, where `clear` does not say it."""
OF_A_PAGE = 3
"""Looks in a row that must fail where nothing else is said: a page may be slow once."""
SENSES = ("checks", "error-log", "llm", NETWORK, "process-alive", PROCESS_USAGE, SYSTEM_RESOURCE)
"""Watchers whose numbers there are: a name that is nearly one of these is a slip. An engine's own have others."""

SOURCES = ("command", "http", "file", "log", "vital")
"""What may be looked at."""
BOUNDS = ("age_over", "age_under", "size_over", "size_under")
ABOUT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("http_status", "http_body"), ("http",)),
    **dict.fromkeys((*BOUNDS, "missing"), ("file",)),
    **dict.fromkeys(("lines", "within"), ("log",)),
    **dict.fromkeys(("over", "under", "clear"), ("vital",)),
    **dict.fromkeys(("run", "tries", "pause"), (RUN_COMMAND,)),
    "timeout": ("command", "http"),
    "grace": (RESTART.strip(),),
}
"""By setting, what it is about: what is looked at, or what follows."""

Then = Annotated[
    str,
    text_check(
        re.compile(rf"{TELL}|{RUN_COMMAND}|{RESTART}[^ ]+").fullmatch,
        f"is nothing that may follow; write '{TELL}', '{RESTART}NAME' or '{RUN_COMMAND}'",
    ),
]
Vital = Annotated[
    str,
    text_check(
        re.compile(r"[^.\s]+\.\S+").fullmatch,
        "is no vital; write its name as `upulse vitals` does, as 'system-resource.memory'",
    ),
]


class NumberBound(NamedTuple):
    """At which number it is bad, from which on it is well again, and whether a low number is bad, not a high one."""

    raise_: float
    clear: float
    below: bool = False


class CheckSettings(Group):
    """One `[[check]]`: something that must be well, and what follows when it is not.

    What is looked at is one of `command`, `http`, `file`, `log` and `vital`.
    """

    name: Name = Field(description="its name everywhere", examples=["backup"])
    command: Argv = Field(
        (),
        description="argv of a command that must exit with 0, run as the user that Pulse runs as",
        examples=[["/usr/local/bin/check-backup"]],
    )
    http: HttpUrl | None = Field(
        None,
        description="URL that must answer; redirects are not followed",
        examples=["https://example.org/"],
    )
    http_status: Statuses = HTTP_STATUS
    http_body: Regex | None = HTTP_BODY
    file: RootedPath | None = Field(
        None, description="file or directory that must be there", examples=["/var/backups/db.gz"]
    )
    age_over: Duration = Field(
        0, ge=0, description="time since its last change that is too long; 0: any is good"
    )
    age_under: Duration = Field(
        0, ge=0, description="time since its last change that is too short; 0: any is good"
    )
    size_over: Size = Field("", description='bytes that are too many, as "2G"', examples=["2G"])
    size_under: Size = Field("", description='bytes that are too few, as "1K"', examples=["1K"])
    missing: Literal["bad", "good", "wanted"] = Field(
        "bad", description="what it means that the file is not there; wanted: it is bad if it is"
    )
    log: str | None = Field(
        None,
        description="`path` or `unit` of a [[log]], whose matching lines are counted",
        examples=["app.service"],
    )
    lines: int = Field(1, ge=1, le=SEEN, description="matching lines within `within` that are too many")
    within: Duration = Field(600 * SECOND, ge=SECOND, le=DAY, description="how long a matching line counts")
    vital: Vital | None = Field(
        None, description="number that `upulse vitals` shows, by its name", examples=["system-resource.load1"]
    )
    over: float | None = Field(
        None, allow_inf_nan=False, description="from which number on it is bad", examples=[16]
    )
    under: float | None = Field(
        None, allow_inf_nan=False, description="up to which number it is bad", examples=[1]
    )
    clear: float | None = Field(
        None,
        allow_inf_nan=False,
        description="number beyond which it is well again; not set: 5% back from `over` or `under`",
        examples=[12],
    )
    every: Duration = Field(30 * SECOND, ge=SECOND // 2, le=DAY, description="time between two looks")
    timeout: Duration = Field(
        10 * SECOND, gt=0, le=300 * SECOND, description="how long a command, or an answer, may take"
    )
    for_: Duration = Field(0, alias="for", ge=0, description="how long it must be bad before it counts")
    evidence: int = Field(
        0,
        ge=0,
        le=1000,
        description=f"looks in a row that must agree; 0: {OF_A_PAGE} at a page, 1 at all else",
    )
    severity: Literal["info", "warning", "error", "critical"] = Field(
        "warning", description="how severe its notices are, which decides about the addresses that they go to"
    )
    then: Then = Field(
        TELL,
        description=f"what follows: a notice; or `{RESTART}NAME`, of a [[process]], or `{RUN_COMMAND}`, and a notice if that"
        " did not help",
        examples=["restart litellm"],
    )
    grace: Duration = Field(
        60 * SECOND, ge=0, description="time that the process has after its start, in which nothing counts"
    )
    run: Argv = Field(
        (), description="argv of the command that mends it", examples=[["/usr/local/bin/clean-up"]]
    )
    tries: int = Field(3, ge=1, le=20, description="how often that command is tried before it is well again")
    pause: Duration = Field(
        60 * SECOND,
        ge=SECOND,
        le=DAY,
        description="least time between two tries; doubled with each further one",
    )

    @model_validator(mode="after")
    def _looks_at_one_thing(self) -> "CheckSettings":
        given = [source for source in SOURCES if getattr(self, source)]
        if not given:
            raise ValueError("nothing says what is looked at; give command, http, file, log or vital")
        if len(given) > 1:
            words = "are more than one thing to look at; keep one, and make another [[check]]"
            raise ValueError(f"{' and '.join(given)} {words}")
        if self.runs and not self.run:
            raise ValueError(f"then = '{RUN_COMMAND}' runs nothing; give run = [argv…]")
        there, fields = {*given, self.then.partition(" ")[0]}, type(self).model_fields
        for key, abouts in ABOUT.items():
            if getattr(self, key) != fields[key].default and there.isdisjoint(abouts):
                raise ValueError(f"{key} is about {' or '.join(abouts)}; give that, or take {key} out")
        return self

    @model_validator(mode="after")
    def _bounds_agree(self) -> "CheckSettings":
        bounds = [key for key in BOUNDS if getattr(self, key)]
        if len(bounds) > 1:
            raise ValueError(
                f"{' and '.join(bounds)} are more than one bound; keep one, and make another [[check]]"
            )
        if bounds and self.missing == "wanted":
            raise ValueError(f"a file that must not be there has no {bounds[0]}; take that out")
        if bounds and self.bound is None:
            raise ValueError(f"{bounds[0]} is no bound; write a size as '2G', or take it out")
        if self.vital and (self.over is None) == (self.under is None):
            raise ValueError("give either over or under, to say which numbers of the vital are bad")
        if self.clear is not None and self.over is not None and self.clear >= self.over:
            raise ValueError(f"clear ({self.clear:g}) is not below over ({self.over:g}); lower it")
        if self.clear is not None and self.under is not None and self.clear <= self.under:
            raise ValueError(f"clear ({self.clear:g}) is not above under ({self.under:g}); raise it")
        return self

    @property
    def restart(self) -> str | None:
        """The name of the process that is restarted, if one is."""
        return self.then.removeprefix(RESTART) if self.then.startswith(RESTART) else None

    @property
    def runs(self) -> bool:
        """Whether a command is run that mends it."""
        return self.then == RUN_COMMAND

    @property
    def needed(self) -> int:
        """How many looks in a row must agree."""
        return self.evidence or (OF_A_PAGE if self.http else 1)

    @property
    def bound(self) -> NumberBound | None:
        """The bound of what is measured: seconds, bytes, lines or a vital's own number; None if nothing is."""
        if self.age_over or self.age_under:
            seconds = (self.age_over or self.age_under) / SECOND
            return NumberBound(seconds, seconds, not self.age_over)
        if self.log:
            return NumberBound(self.lines, (self.lines + 1) // 2)
        high = self.over if self.over is not None else size_number(self.size_over) or None
        low = self.under if self.under is not None else size_number(self.size_under) or None
        if (number := low if high is None else high) is None:
            return None
        back = BACK * abs(number)
        clear = self.clear if self.clear is not None else number + (back if high is None else -back)
        return NumberBound(number, clear, high is None)


def check_disagreements(checks: Sequence[CheckSettings], tables: NamedTables) -> list[Disagreement]:
    """A fault for each check that is there twice, or names what there is not; at most MOST_FAULTS."""
    twice = repeated_names("check", [check.name for check in checks])
    return list(islice(chain(twice, _unknown_names(checks, tables)), MOST_FAULTS))


def _unknown_names(checks: Sequence[CheckSettings], tables: NamedTables) -> Iterator[Disagreement]:
    from difflib import get_close_matches  # each process composes the settings, and few have a check

    processes = {process.name for process in tables.process}
    logs = {name for log in tables.log for name in (log.path, log.unit) if name}
    for place, check in enumerate(checks):
        if (name := check.restart) and name not in processes:
            words = f"there is no [[process]] {name!r}{hint(name, processes)}"
            yield Disagreement("check", place, "then", words)
        if check.log and check.log not in logs:
            words = f"there is no [[log]] with the path or unit {check.log!r}{hint(check.log, logs)}"
            yield Disagreement("check", place, "log", words)
        sense = (check.vital or "").partition(".")[0]
        if sense not in SENSES and (near := get_close_matches(sense, SENSES, n=1, cutoff=0.7)):
            words = f"nothing senses {sense!r} (did you mean {near[0]!r}?)"
            yield Disagreement("check", place, "vital", words)


CHECKS: SettingsGroup[tuple[CheckSettings, ...]] = SettingsGroup(
    "check",
    tuple[CheckSettings, ...],
    (),
    check_disagreements,
    {"name": None, "then": TELL, "log": None, "vital": None},
)
