"""Which OpenClaw gateways there are, and where each has its config."""

from collections.abc import Sequence
from itertools import islice

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.model.errors import hint
from pulse_core.settings.cross_checks import MOST_FAULTS, Disagreement, repeated_places
from pulse_core.settings.groups import Duration, Group, Path
from pulse_core.settings.processes import Name
from pulse_core.settings.settings_group import NamedTables, SettingsGroup


class OpenClawSettings(Group):
    """One `[[openclaw]]`: a gateway whose good configs are kept, and put back when a new one does not boot."""

    process: Name = Field(description="name of the [[process]] that it is", examples=["openclaw"])
    folder: Path = Field(
        "~/.openclaw",
        description="its state folder, with its config and its sessions",
        examples=["/srv/openclaw"],
    )
    config: Path | None = Field(
        None,
        description="its config; else `openclaw.json` in `folder`",
        examples=["/srv/openclaw/openclaw.json"],
    )
    keep: int = Field(5, ge=1, le=50, description="configs that are kept of those that it has stayed up with")
    proven: Duration = Field(
        2 * UNITS["m"], ge=UNITS["s"], description="how long it must stay up with a config that is to be kept"
    )
    failures: int = Field(
        2,
        ge=0,
        le=20,
        description="starts with a new config that must fail before a kept one is put back; 0: none is",
    )


def gateway_disagreements(gateways: Sequence[OpenClawSettings], tables: NamedTables) -> list[Disagreement]:
    """A fault for each gateway that is there twice, or is no process; at most MOST_FAULTS."""
    named, known = [one.process for one in gateways], {process.name for process in tables.process}
    twice = {place: f"{named[place]!r} is there twice; keep one" for place in repeated_places(named)}
    none = {
        place: f"there is no [[process]] {name!r}{hint(name, known)}"
        for place, name in enumerate(named)
        if name is not None and name not in known
    }
    found = (Disagreement("openclaw", place, "process", words) for place, words in {**none, **twice}.items())
    return list(islice(found, MOST_FAULTS))


OPENCLAW: SettingsGroup[tuple[OpenClawSettings, ...]] = SettingsGroup(
    "openclaw", tuple[OpenClawSettings, ...], (), gateway_disagreements, {"process": None}
)
