"""Which endpoints must answer, how often they are asked, and what is restarted when they do not."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Annotated, Literal

from pydantic import Field

from pulse_core.model.durations import UNITS
from pulse_core.model.errors import hint
from pulse_core.settings.cross_checks import MOST_FAULTS, Disagreement, repeated_places
from pulse_core.settings.groups import Duration, Group, HttpUrl, text_check
from pulse_core.settings.settings import Settings
from pulse_core.settings.settings_group import NamedTables, SettingsGroup

SECOND = UNITS["s"]
LONGEST_CHECK = 90 * SECOND
"""How long a LiteLLM proxy may take to call each of its models; it gives each one a minute."""

LIVE, READY, MODELS = "live", "ready", "models"
PARTS: Mapping[str, Mapping[str, str]] = {
    "page": {},
    "litellm": {"/health/liveliness": LIVE, "/health/readiness": READY, "/health": MODELS},
    "openclaw": {"/healthz": LIVE, "/readyz": READY},
}
"""What each kind of gateway is asked, by the path, as it documents that; only of the first one a restart is a remedy."""


class LlmSettings(Group):
    """One `[[llm]]`: an LLM endpoint that must answer, and the process to restart when it does not."""

    url: HttpUrl = Field(
        description="URL that answers with 2xx when it is well",
        examples=["http://127.0.0.1:4000/health/liveliness"],
    )
    kind: Literal["page", "litellm", "openclaw"] = Field(
        "page",
        description="what `url` is: one page, or the address of a gateway, of which each health endpoint is asked",
        examples=["litellm"],
    )
    models: Duration = Field(
        0,
        ge=0,
        description="time between two questions to LiteLLM for its models, each of which it calls then; 0: none",
    )
    key: Annotated[
        str,
        text_check(
            re.compile("|env:[A-Za-z_][A-Za-z0-9_]*").fullmatch, "is no variable; write it as 'env:NAME'"
        ),
    ] = Field(
        "",
        description="variable with the key with which LiteLLM tells of its models",
        examples=["env:LITELLM_MASTER_KEY"],
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


def endpoint_disagreements(endpoints: Sequence[LlmSettings], tables: NamedTables) -> list[Disagreement]:
    """A fault for each endpoint that is there twice, or restarts no process or another one's; at most MOST_FAULTS."""
    names = {process.name for process in tables.process}
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
        (
            Disagreement("llm", place, "models", "only LiteLLM is asked for its models; add kind = \"litellm\"")
            for place, llm in enumerate(endpoints)
            if llm.models and llm.kind != "litellm"
        ),
    )  # fmt: skip
    return list(islice(found, MOST_FAULTS))


ENDPOINTS: SettingsGroup[tuple[LlmSettings, ...]] = SettingsGroup(
    "llm", tuple[LlmSettings, ...], (), endpoint_disagreements, {"url": None, "restart": None}
)


def endpoints_of(settings: Settings) -> tuple[LlmSettings, ...]:
    """What is asked: each page, and in place of a gateway each of its health endpoints, the live one first."""
    return tuple(part for llm in ENDPOINTS.of(settings) for part in _parts(llm))


def _parts(llm: LlmSettings) -> Sequence[LlmSettings]:
    if llm.kind == "page":
        return (llm,)
    urls = {f"{llm.url.rstrip('/')}{path}": role for path, role in PARTS[llm.kind].items()}
    asked = {MODELS: {"interval": llm.models, "timeout": max(llm.timeout, LONGEST_CHECK)}}
    return [
        llm.model_copy(update={"url": url, **asked.get(role, {})})
        for url, role in urls.items()
        if role != MODELS or llm.models
    ]


def role_of(llm: LlmSettings) -> str:
    """Which endpoint of its gateway this is, if it is one of these."""
    return next((role for path, role in PARTS[llm.kind].items() if llm.url.endswith(path)), LIVE)


def live_url(llm: LlmSettings) -> str:
    """The URL by which it is known whether its gateway itself is there; its own, if it is none of a gateway."""
    if role_of(llm) == LIVE:
        return llm.url
    path = next(path for path in PARTS[llm.kind] if llm.url.endswith(path))
    return llm.url.removesuffix(path) + next(iter(PARTS[llm.kind]))
