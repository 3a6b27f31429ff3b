"""What the health endpoints of gateways say, as they document it: decoded here once, typed and bounded. Pure."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from pulse_core.llm.settings import LIVE, READY, LlmSettings, role_of
from pulse_core.model.text import listed
from pulse_core.ports.prober import ProbeResult, Trouble

LARGEST_BODY = 128 << 10
"""Bytes of an answer that is decoded."""
MOST_NAMED, LONGEST_NAME = 10, 100


def read_answer(llm: LlmSettings, answer: ProbeResult) -> ProbeResult:
    """The answer of a gateway's endpoint with what its body means, and without the body."""
    found, role = answer._replace(body=""), role_of(llm)
    if role == LIVE or answer.trouble or answer.status not in (200, 503):
        return found
    told = _object(answer.body)
    if role == READY:
        if answer.status == 503:
            states = [f"{name} {told[name]}" for name in ("status", "db") if isinstance(told.get(name), str)]
            named = _names(told.get("failing") or states) or "it does not say why"
            return found._replace(trouble=Trouble.STATUS, detail=f"it is not ready: {named}")
        return found
    failing, well = told.get("unhealthy_endpoints"), told.get("healthy_endpoints")
    if not isinstance(failing, list) or not isinstance(well, list):
        return found._replace(trouble=Trouble.BROKEN, detail="its answer names no models, as LiteLLM's does")
    if not failing:
        return found
    named = _names([one.get("model") for one in failing if isinstance(one, dict)])
    count = f"{len(failing)} of {len(failing) + len(well)} models"
    return found._replace(trouble=Trouble.BODY, detail=f"{count} can't be reached through it: {named}")


def _object(body: str) -> Mapping[str, Any]:
    try:
        told = from_json(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _names(told: object) -> str:
    """Names in a list, as far as they are some, on one line."""
    known = (
        [" ".join(one.split())[:LONGEST_NAME] for one in told if isinstance(one, str)]
        if isinstance(told, list)
        else []
    )
    return listed(known, MOST_NAMED)
