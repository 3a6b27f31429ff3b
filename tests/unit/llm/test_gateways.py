"""Gateways to LLMs: which of their health endpoints are asked, and what each documented answer means."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from pulse_core.llm.endpoint import check_status, state_of
from pulse_core.llm.gateway import read_answer
from pulse_core.llm.settings import LlmSettings, endpoints_of
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.settings.settings import Settings
from tests.integration.network.gateway_server import LITELLM, OPENCLAW

LITE: dict[str, Any] = {
    "url": "http://127.0.0.1:4000/",
    "kind": "litellm",
    "models": "5m",
    "restart": "proxy",
}
CLAW: dict[str, Any] = {"url": "http://127.0.0.1:18789", "kind": "openclaw"}
PROXY = {"name": "proxy", "start": ["litellm"]}


def parts(**llm: Any) -> dict[str, LlmSettings]:
    """What is asked of this gateway, by the end of its URL."""
    asked = endpoints_of(Settings.model_validate({"llm": [llm], "process": [PROXY]}))
    return {one.url.partition("127.0.0.1:")[2].partition("/")[2]: one for one in asked}


def meaning(llm: LlmSettings, answer: ProbeResult) -> tuple[str, str]:
    """The state that an answer shows, and the words about it."""
    found = check_status(read_answer(llm, answer))
    assert found.body == ""
    return state_of(found, llm), found.detail


def test_of_a_gateway_each_health_endpoint_is_asked_and_its_models_only_if_that_is_wanted() -> None:
    found = parts(**LITE)
    assert list(found) == ["health/liveliness", "health/readiness", "health"]
    assert [one.interval // 1_000_000 for one in found.values()] == [15, 15, 300]
    assert found["health"].timeout == 90_000_000
    assert "health" not in parts(**{**LITE, "models": "0s"})
    assert list(parts(**CLAW)) == ["healthz", "readyz"]


def test_models_are_asked_for_of_litellm_alone_and_a_key_is_never_written_out() -> None:
    with pytest.raises(ValidationError, match="only LiteLLM is asked for its models"):
        parts(**{**CLAW, "models": "5m"})
    with pytest.raises(ValidationError, match="is no variable; write it as 'env:NAME'"):
        parts(**{**LITE, "key": "sk-1234"})


@pytest.mark.parametrize(
    "answer", [ProbeResult(Trouble.REFUSED), ProbeResult(status=500), ProbeResult(status=503)]
)
def test_only_of_the_live_endpoint_a_failure_is_one_that_a_restart_may_mend(answer: ProbeResult) -> None:
    states = {path: meaning(llm, answer)[0] for path, llm in {**parts(**LITE), **parts(**CLAW)}.items()}
    assert states == {
        "health/liveliness": "down", "health/readiness": "not-ready", "health": "not-ready",
        "healthz": "down", "readyz": "not-ready",
    }  # fmt: skip


def test_what_is_well_as_documented_is_well() -> None:
    for wanted, told in ((LITE, LITELLM), (CLAW, OPENCLAW)):
        for path, llm in parts(**wanted).items():
            status, body = told[f"/{path}"]
            assert meaning(llm, ProbeResult(status=status, body=json.dumps(body))) == ("", "")


@pytest.mark.parametrize(
    ("wanted", "path", "body", "words"),
    [
        (LITE, "health/readiness", {"status": "healthy", "db": "disconnected"}, "status healthy, db disconnected"),
        (LITE, "health/readiness", {"status": "shutting_down"}, "status shutting_down"),
        (CLAW, "readyz", {"ready": False, "failing": ["telegram", "agent-database:main"]}, "telegram, agent-database:main"),
        (CLAW, "readyz", {"ready": False, "failing": ["a\nb", 7, None] + ["x" * 999] * 20},
         ", ".join(["a b"] + ["x" * 100] * 9) + " and 11 more"),
        (CLAW, "readyz", {"ready": False, "failing": "telegram"}, "it does not say why"),
        (CLAW, "readyz", [1], "it does not say why"),
    ],
)  # fmt: skip
def test_who_is_not_ready_says_of_what(wanted: dict[str, Any], path: str, body: object, words: str) -> None:
    state = meaning(parts(**wanted)[path], ProbeResult(status=503, body=json.dumps(body)))
    assert state == ("not-ready", f"it is not ready: {words}")


def test_models_that_fail_are_their_providers_fault() -> None:
    failing = [{"model": "azure/gpt-4o", "error": "boom", "api_base": "https://one"}, {"model": None}, 7]
    body = {"healthy_endpoints": [{"model": "azure/gpt-4o-mini"}], "unhealthy_endpoints": failing}
    state = meaning(parts(**LITE)["health"], ProbeResult(status=200, body=json.dumps(body)))
    assert state == ("provider", "3 of 4 models can't be reached through it: azure/gpt-4o")
    assert meaning(parts(**LITE)["health"], ProbeResult(status=401, body="{}"))[0] == "refuses"


@pytest.mark.parametrize(
    "body", ["", "{", "null", "[" * 100_000, '{"healthy_endpoints": 1}', "\x00\ufffd", "I'm alive!"]
)
def test_an_answer_that_is_none_of_litellm_says_nothing_of_providers(body: str) -> None:
    assert meaning(parts(**LITE)["health"], ProbeResult(status=200, body=body)) == (
        "not-ready", "its answer names no models, as LiteLLM's does"
    )  # fmt: skip
