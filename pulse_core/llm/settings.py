"""Which endpoints must answer, how often they are asked, and what is restarted when they do not."""

from collections.abc import Sequence
from itertools import chain, islice

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.model.errors import hint
from pulse_core.settings.composed import SettingsGroup
from pulse_core.settings.cross_checks import MOST_FAULTS, Disagreement, repeated_places
from pulse_core.settings.groups import Duration, Group, HttpUrl
from pulse_core.settings.processes import ProcessSettings

SECOND = UNITS["s"]


class LlmSettings(Group):
    """One `[[llm]]`: an LLM endpoint that must answer, and the process to restart when it does not."""

    url: HttpUrl = Field(
        description="URL that answers with 2xx when it is well",
        examples=["http://127.0.0.1:4000/health/liveliness"],
    )
    restart: str | None = Field(
        None,
        description="name of the [[process]] that is restarted when it does not answer",
        examples=["litellm"],
    )
    interval: Duration = Field(15 * SECOND, ge=SECOND // 10, description="time between two questions")
    timeout: Duration = Field(10 * SECOND, gt=0, description="how long an answer may take")
    evidence: int = Field(3, ge=1, le=1000, description="questions in a row that must fail")
    grace: Duration = Field(
        60 * SECOND, ge=0, description="time that it has to answer after its process was started"
    )


def endpoint_disagreements(
    endpoints: Sequence[LlmSettings], processes: Sequence[ProcessSettings]
) -> list[Disagreement]:
    """A fault for each endpoint that is there twice, or restarts no process or another one's; at most MOST_FAULTS."""
    names = {process.name for process in processes}
    urls = [endpoint.url for endpoint in endpoints]
    restarts = [endpoint.restart for endpoint in endpoints]
    found = chain(
        (Disagreement("llm", place, "url", f"{urls[place]!r} is there twice; keep one") for place in repeated_places(urls)),
        (
            Disagreement("llm", place, "restart", f"{restarts[place]!r} is restarted for another [[llm]] already; keep one")
            for place in repeated_places(restarts)
        ),
        (
            Disagreement("llm", place, "restart", f"there is no [[process]] {name!r}{hint(name, names)}")
            for place, name in enumerate(restarts)
            if name is not None and name not in names
        ),
    )  # fmt: skip
    return list(islice(found, MOST_FAULTS))


ENDPOINTS: SettingsGroup[tuple[LlmSettings, ...]] = SettingsGroup(
    "llm", tuple[LlmSettings, ...], (), endpoint_disagreements, {"url": None, "restart": None}
)
