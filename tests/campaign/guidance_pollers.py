"""Four agents ask and acknowledge as fast as they can while somebody edits the guidance a hundred times."""

import asyncio
import hashlib
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

from tests.unit.guidance.test_guidance_command import serving

POLLERS, EDITS = 4, 100
PAUSES_S = (0.04, 0.01)
"""Between two edits, by turns of the runs."""
HEADERS = {"Accept": "application/json, text/event-stream"}


def campaign(runs: int) -> bool:
    """Do it so often; whether each change was recorded whole and once, and each acknowledgement kept."""
    good = 0
    for number in range(runs):
        with tempfile.TemporaryDirectory(prefix="pulse-campaign-") as place:
            project = Path(place) / "project"
            project.mkdir()
            with serving(Path(place) / "home", project) as (url, _):
                try:
                    asyncio.run(run(url, project / ".pulse", PAUSES_S[number % len(PAUSES_S)]))
                    good += 1
                except AssertionError as error:
                    print(f"guidance: run {number}: {error!r}", flush=True)
    print(f"guidance: {good} of {runs} runs of {POLLERS} pollers at {EDITS} edits", flush=True)
    return good == runs


async def run(url: str, folder: Path, pause: float) -> None:
    """One run."""
    edits = [f"edit {number} " * 400 for number in range(EDITS)]
    accepted, done = list[str](), asyncio.Event()
    async with httpx.AsyncClient(headers=HEADERS, timeout=60) as client:
        async with asyncio.TaskGroup() as group:
            for _ in range(POLLERS):
                group.create_task(poll(client, url, done, accepted))
            for text in edits:
                await asyncio.to_thread((folder / "guidance.md").write_text, text)
                [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
                json.loads((folder / "state.json").read_text())
                await asyncio.sleep(pause)
            done.set()
        while await ask(client, url, accepted):
            pass
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    hashes = [event["sha256"] for event in events]
    known = {hashlib.sha256(text.encode()).hexdigest(): place for place, text in enumerate(edits)}
    places = [known.get(one, -1) for one in hashes]
    assert -1 not in places, "a torn read"
    assert places == sorted(set(places)), "a change was recorded twice"
    assert places[-1] == EDITS - 1, "the last edit was lost"
    assert max(Counter(accepted).values()) == 1, "an acknowledgement was accepted twice"
    last = json.loads((folder / "state.json").read_text())["last_acknowledged_event_id"]
    assert last == accepted[-1] == events[-1]["id"], "an acknowledgement was lost"


async def poll(client: httpx.AsyncClient, url: str, done: asyncio.Event, accepted: list[str]) -> None:
    """Ask for as long as somebody edits."""
    while not done.is_set():
        await ask(client, url, accepted)


async def ask(client: httpx.AsyncClient, url: str, accepted: list[str]) -> bool:
    """Whether a replan was needed, which is acknowledged then."""
    asked = await call(client, url, "pulse_should_interrupt")
    if asked["needs_replan"]:
        said = await call(client, url, "pulse_ack_replan", event_id=asked["pending_replan_event_id"])
        if said["accepted"]:
            accepted.append(said["acknowledged_event_id"])
        else:
            assert "stale" in said["reason"] or "no pending" in said["reason"], said
    return bool(asked["needs_replan"])


async def call(client: httpx.AsyncClient, url: str, name: str, **values: Any) -> Any:
    """What a tool answers."""
    params = {"name": name, "arguments": values}
    answer = await client.post(
        url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    )
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert not result["isError"], result
    return json.loads(result["content"][0]["text"])
