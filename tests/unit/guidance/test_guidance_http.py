"""The MCP server over HTTP: what it answers, and whom it does not."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import httpx
import pytest
from mcp import Client

from pulse_adapters.guidance.mcp_server import GuidanceServer
from pulse_adapters.host.server_port import LOOPBACK
from pulse_adapters.mcp_http.http_server import LONGEST_REQUEST, RequireToken, stateless_app
from pulse_core.guidance.protocol import ENDPOINT
from tests.long_form import sample
from tests.unit.guidance.guidance_world import ROOT, GuidanceWorld

URL = "http://127.0.0.1:8765/mcp"
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@asynccontextmanager
async def served(
    world: GuidanceWorld, host: str = "127.0.0.1", token: str | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, without a socket between them."""
    service = world.service()
    service.begin(ROOT)
    server = GuidanceServer(service, lambda: ROOT)
    app = stateless_app(server.mcp(), ENDPOINT, host in LOOPBACK)
    asked: Any = app if token is None else RequireToken(app, token)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(asked)) as client,
    ):
        yield client
    server.close()


def asked(method: str, **params: Any) -> Mapping[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


LIST = asked("tools/list")


@pytest.mark.parametrize("said", [b"1", b"\xff"])
async def test_a_stream_that_nothing_would_come_by_is_refused(said: bytes) -> None:
    async with served(GuidanceWorld()) as client:
        headers = {
            **{name.encode(): value.encode() for name, value in HEADERS.items()},
            b"Last-Event-ID": said,
        }
        assert (await client.get(URL, headers=headers)).status_code == 405
        assert (await client.post(URL, headers=headers, json=LIST)).status_code == 200


async def test_an_unknown_prompt_is_told_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with served(GuidanceWorld()) as client:
        said = (await client.post(URL, headers=HEADERS, json=asked("prompts/get", name="x"))).json()
        assert "error" in said
    assert not [one for one in caplog.records if one.exc_info]


async def call(client: httpx.AsyncClient, name: str, **arguments: Any) -> Any:
    """What a tool says to a client of 2025, which does not shake hands first."""
    answer = await client.post(URL, headers=HEADERS, json=asked("tools/call", name=name, arguments=arguments))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    (block,) = answer.json()["result"]["content"]
    return json.loads(block["text"])


async def test_the_surface_is_exactly_this() -> None:
    async with served(GuidanceWorld()) as client:

        async def listed(method: str) -> Any:
            return (await client.post(URL, headers=HEADERS, json=asked(method))).json()["result"]

        tools = (await listed("tools/list"))["tools"]
        assert {tool["name"]: list(tool["inputSchema"]["properties"]) for tool in tools} == {
            "pulse_should_interrupt": ["last_seen_event_id"],
            "pulse_ack_replan": ["event_id"],
        }
        assert [tool["inputSchema"].get("required", []) for tool in tools] == [[], ["event_id"]]
        (resource,) = (await listed("resources/list"))["resources"]
        assert (resource["uri"], resource["mimeType"]) == ("pulse://context/latest", "text/plain")
        assert (await listed("resources/templates/list"))["resourceTemplates"] == []
        (prompt,) = (await listed("prompts/list"))["prompts"]
        assert prompt["name"] == "pulse_replan"
        said = asked("prompts/get", name="pulse_replan")
        (message,) = (await client.post(URL, headers=HEADERS, json=said)).json()["result"]["messages"]
        assert message["role"] == "user"
        for word in ("pulse://context/latest", "pulse_should_interrupt", "pulse_ack_replan"):
            assert word in message["content"]["text"]


async def test_an_agent_notices_replans_and_acknowledges() -> None:
    world = GuidanceWorld()
    async with served(world) as client:
        assert not (await call(client, "pulse_should_interrupt"))["needs_replan"]
        world.files["guidance.md"] = "a smaller patch"
        asked_ = await call(client, "pulse_should_interrupt", last_seen_event_id=None)
        read = asked("resources/read", uri="pulse://context/latest")
        (text,) = (await client.post(URL, headers=HEADERS, json=read)).json()["result"]["contents"]
        assert text["text"].startswith("# PulseAgent Context")
        assert "a smaller patch" in text["text"]
        world.files["plan.md"] = "smaller"
        done = await call(client, "pulse_ack_replan", event_id=asked_["pending_replan_event_id"])
        assert done["accepted"]
        assert not (await call(client, "pulse_should_interrupt"))["needs_replan"]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_client_of_the_first_sdk_is_answered(version: str) -> None:
    """What `mcp` 1.x sends, in its order: it shakes hands first, and names the version from then on."""
    world = GuidanceWorld()
    async with served(world) as client:
        hello = {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "mcp", "version": "0.1.0"},
        }
        answer = await client.post(URL, headers=HEADERS, json=asked("initialize", **hello))
        assert answer.json()["result"]["protocolVersion"] == version
        assert "mcp-session-id" not in answer.headers
        headers = {**HEADERS, "MCP-Protocol-Version": version}
        begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await client.post(URL, headers=headers, json=begun)).status_code == 202
        world.files["guidance.md"] = "smaller"
        call = asked("tools/call", name="pulse_should_interrupt", arguments={})
        result = (await client.post(URL, headers=headers, json=call)).json()["result"]
        (block,) = result["content"]
        assert block["type"] == "text"
        assert json.loads(block["text"])["needs_replan"]


REFUSED = [
    ({"Host": "evil.example:8765"}, 421),
    ({"Host": ""}, 421),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Content-Type": "text/plain"}, 400),
    ({"Accept": "text/html"}, 406),
    ({"Host": "localhost:9000", "Origin": "http://localhost:3000"}, 200),
    ({"Host": "[::1]:8765"}, 200),
    ({"Host": "127.0.0.1", "Origin": "http://localhost"}, 200),
    ({"MCP-Protocol-Version": "2025-06-18"}, 200),
]


@pytest.mark.parametrize(("headers", "code"), REFUSED, ids=str)
async def test_who_asks_from_elsewhere_or_for_something_else_is_refused(
    headers: Mapping[str, str], code: int
) -> None:
    async with served(GuidanceWorld()) as client:
        answer = await client.post(URL, headers={**HEADERS, **headers}, json=LIST)
        assert answer.status_code == code


async def test_other_methods_and_paths_are_refused() -> None:
    async with served(GuidanceWorld()) as client:
        assert (await client.delete(URL, headers=HEADERS)).status_code == 405
        assert (await client.put(URL, headers=HEADERS)).status_code == 405
        assert (await client.post("http://127.0.0.1:8765/", headers=HEADERS, json=LIST)).status_code == 404


async def test_without_the_token_nobody_is_answered() -> None:
    async with served(GuidanceWorld(), "192.0.2.7", "s3cret") as client:
        url = URL.replace("127.0.0.1", "192.0.2.7")
        for said in (
            {},
            {"Authorization": "Bearer s3cre"},
            {"Authorization": "s3cret"},
            {"Authorization": "Bearer \xe4"},
        ):
            raw = [(name.encode(), value.encode("latin-1")) for name, value in {**HEADERS, **said}.items()]
            answer = await client.post(url, headers=raw, json=LIST)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        headers = {**HEADERS, "Authorization": "Bearer s3cret"}
        assert (await client.post(url, headers=headers, json=LIST)).status_code == 200
        assert (
            await client.post(url, headers={**headers, "Origin": "http://a.b"}, json=LIST)
        ).status_code == 403


async def test_whoever_has_the_token_may_call_a_machine_by_any_of_its_names() -> None:
    url, token = "http://box.example:8765/mcp", {"Authorization": "Bearer s3cret"}
    async with served(GuidanceWorld(), "0.0.0.0", "s3cret") as client:
        for origin, code in (("http://box.example:8765", 200), ("http://evil.example", 403)):
            answer = await client.post(url, headers={**HEADERS, **token, "Origin": origin}, json=LIST)
            assert answer.status_code == code
        assert (await client.post(url, headers=HEADERS, json=LIST)).status_code == 401


ODD: list[bytes] = [
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b"[" * 20_000,
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}',
    json.dumps(
        asked("tools/call", name="pulse_should_interrupt", arguments={"last_seen_event_id": {}})
    ).encode(),
    json.dumps(asked("tools/call", name="no_such_tool", arguments={})).encode(),
    json.dumps(asked("resources/read", uri="pulse://context/../../etc/passwd")).encode(),
    json.dumps(asked("resources/read", uri="file:///etc/passwd")).encode(),
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * 1_000}).encode(),
    b"x" * (LONGEST_REQUEST + 1),
]


METHODS = ("tools/call", "resources/read", "prompts/get", "initialize", "ping", "tools/list", "x", "")
WORDS = (
    "pulse_should_interrupt",
    "pulse_ack_replan",
    "pulse_replan",
    "event_id",
    "last_seen_event_id",
    "\0",
    "ü",
    "",
)


def odd_value(random: Random, depth: int = 3) -> Any:
    """Any JSON value."""
    match random.randrange(7 if depth else 4):
        case 0:
            return random.choice((None, True, False))
        case 1:
            return random.choice((0, -1, 2**63, 1e300, 0.5))
        case 2 | 3:
            return random.choice(WORDS)
        case 4:
            return [odd_value(random, depth - 1) for _ in range(random.randrange(3))]
        case _:
            return {random.choice(WORDS): odd_value(random, depth - 1) for _ in range(random.randrange(3))}


def odd_frame(random: Random) -> bytes:
    """A request of which each part is odd now and then, or no request at all."""

    def often(right: Any) -> Any:
        return right if random.random() < 0.8 else odd_value(random)

    if random.random() < 0.1:
        return random.randbytes(random.randrange(100))
    called = often({"name": often(random.choice(WORDS)), "arguments": often({"event_id": odd_value(random)})})
    frame = {
        "jsonrpc": often("2.0"),
        "id": often(1),
        "method": often(random.choice(METHODS)),
        "params": called,
    }
    return json.dumps(frame).encode()


async def test_whatever_is_asked_is_answered_and_changes_nothing() -> None:
    """Frames that nobody foresaw: no one of them ends the server, or is an acknowledgement."""
    world, random = GuidanceWorld(), Random(1)
    async with served(world) as client:
        before = len(world.events)
        for frame in (odd_frame(random) for _ in range(sample(150, 5_000))):
            answer = await client.post(URL, headers=HEADERS, content=frame)
            assert answer.status_code in (200, 202, 400, 404), frame
        assert not (await call(client, "pulse_should_interrupt"))["needs_replan"]
        assert len(world.events) == before


async def test_odd_requests_end_with_an_error_and_the_next_is_answered() -> None:
    async with served(GuidanceWorld()) as client:
        for body in ODD:
            answer = await client.post(URL, headers=HEADERS, content=body)
            assert answer.status_code in (200, 202, 400, 404, 413)
            if answer.status_code == 200:
                said = answer.json()
                assert "error" in said or said["result"]["isError"]
        for id_ in (
            "\0",
            "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
            "x" * 100_000,
            "evt_\n",
        ):
            assert not (await call(client, "pulse_ack_replan", event_id=id_))["accepted"]
            assert not (await call(client, "pulse_should_interrupt", last_seen_event_id=id_))["needs_replan"]


@pytest.mark.parametrize(
    ("said", "words"),
    [({}, "required"), ({"event_id": None}, "required"), ({"event_id": 7}, "Event 7 was not found")],
    ids=str,
)
async def test_an_acknowledgement_without_a_proper_id_is_refused_in_the_words_of_the_protocol(
    said: Mapping[str, Any], words: str
) -> None:
    async with served(GuidanceWorld()) as client:
        answer = await call(client, "pulse_ack_replan", **said)
    assert (answer["accepted"], answer["acknowledged_event_id"], answer["plan_sha256"]) == (False, None, None)
    assert words in answer["reason"]


async def test_a_client_of_the_sdk_is_answered_in_both_eras() -> None:
    """Without HTTP between them; over HTTP a test of the command does it."""
    service = (world := GuidanceWorld()).service()
    service.begin(ROOT)
    server = GuidanceServer(service, lambda: ROOT)
    async with Client(server.mcp()) as client:
        world.files["constraints.md"] = "no new dependencies"
        said = await client.call_tool("pulse_should_interrupt", {})
        (block,) = said.content
        assert json.loads(block.text)["needs_replan"]  # type: ignore[union-attr]
        assert said.structured_content is None
    server.close()
