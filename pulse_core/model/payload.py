"""Payloads of events: one class for each kind, registered by its module or its capability."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError, from_json

from pulse_core.model.errors import Refused, UnknownName
from pulse_core.model.json_types import Json
from pulse_core.model.stored_data import REDACTED
from pulse_core.model.text import encodable


class Role(IntEnum):
    """The roles of callers; each may do what the ones below it may."""

    NOBODY = 0
    AGENT = 1
    PERSON = 2
    DAEMON = 3


class Wake(IntEnum):
    """How a recorded event wakes the tick."""

    NEVER = 0
    SOON = 1
    NOW = 2


class Payload(BaseModel):
    """Base of all payloads. `kind` is kebab-case; `by` is the least role that may append it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    kind: ClassVar[str] = ""
    by: ClassVar[Role] = Role.DAEMON
    wakes: ClassVar[Wake] = Wake.SOON

    def __init_subclass__(
        cls, *, kind: str, by: Role = Role.DAEMON, wakes: Wake = Wake.SOON, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.kind, cls.by, cls.wakes = kind, by, wakes


KINDS: dict[str, type[Payload]] = {}
"""The registered kinds; all of them once `pulse_core.composition` was imported."""
_is_complete = False


def register(kinds: Iterable[type[Payload]]) -> None:
    """Register these kinds, so that they can be recorded and decoded."""
    for kind in kinds:
        if KINDS.setdefault(kind.kind, kind) is not kind:
            raise TypeError(f"the kind {kind.kind!r} is taken by {KINDS[kind.kind].__name__}")


def close_registry() -> None:
    """Mark the registry as complete: from now on an unknown kind is one that this version does not have."""
    global _is_complete
    _is_complete = True


def build_models(models: Iterable[type[BaseModel]]) -> None:
    """Build these models, so that no caller waits for it at their first use.

    A command needs few of them; a daemon needs those of the reflex, and soon. Those of what it does not do would only
    take memory: each is built when the first one of its kind comes.
    """
    for model in models:
        model.model_rebuild()


def decode(kind: str, data: str) -> Payload | None:
    """Decode the payload of a stored row; None if this version lacks the kind.

    Data that was redacted reads as empty: that it happened still counts (a pause goes on). None if the kind needs more.
    """
    model = KINDS.get(kind)
    if model is None and not _is_complete:
        raise RuntimeError(f"whether {kind!r} is known is not known yet; import pulse_core.composition first")
    if model is None:
        return None
    if data != REDACTED:
        return model.model_validate_json(data)
    with suppress(ValidationError):
        return model()
    return None


def decode_plain(data: str) -> Mapping[str, Json]:
    """Decode a stored row's data as plain JSON, for folds over many rows: fields with default values are missing.

    It was checked when it was recorded; data that was redacted reads as empty.
    """
    return from_json(data, cache_strings="keys") or {}


def encode(payload: Payload) -> str:
    """Encode the payload as JSON text, validated as if it came from outside (a copy can hold anything).

    Raises Refused with what is wrong, TypeError for a kind that could not be decoded again.
    """
    if KINDS.get(payload.kind) is not type(payload):
        raise TypeError(
            f"the kind {payload.kind!r} is not registered; name it in the kinds of its capability"
        )
    text = encode_checked(payload)
    try:
        type(payload).model_validate_json(text)
    except ValidationError as error:
        raise Refused(f"{payload.kind}: {describe(error)}") from error
    return text


def encode_checked(payload: Payload) -> str:
    """Encode a payload that was validated already; raises Refused if it can't be encoded."""
    try:
        return payload.model_dump_json(exclude_defaults=True, warnings=False)
    except ValueError as error:
        raise Refused(f"{payload.kind}: it cannot be written as JSON ({error})") from error


def parse(kind: str, data: dict[str, Json]) -> Payload:
    """Parse a payload from outside; raises Refused with what is wrong, or UnknownName for an unknown kind."""
    model = KINDS.get(kind)
    if model is None:
        raise UnknownName("event kind", kind, KINDS)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Refused(f"{kind}: {describe(error)}") from error


MOST_DESCRIBED = 100
"""Faults of one value; to spell more takes longer than to find them, and nobody reads that."""


def describe(error: ValidationError) -> str:
    """A validation error as one sentence: each place and what is wrong there; of very many, their number."""
    if (count := error.error_count()) > MOST_DESCRIBED:
        return f"{count:,} values do not fit"
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'value'}: {fault['msg']}"
        for fault in error.errors()
    )


def _short(text: object) -> object:
    if not isinstance(text, str):
        return text
    text = encodable(text)
    return text if len(text) <= 2000 else text[:1997] + "..."


def shape(pattern: str | re.Pattern[str], words: str) -> AfterValidator:
    """Refuses a text that is not of this pattern as a whole, in these words."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise PydanticCustomError("shape", words)
        return text

    return AfterValidator(check)


Text = Annotated[str, BeforeValidator(_short)]
"""A sentence for people, cut at 2,000 characters so that one message cannot fill the log."""
