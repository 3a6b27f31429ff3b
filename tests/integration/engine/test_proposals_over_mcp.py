"""A client with a token proposes a rule over MCP: it comes into force by itself only where the settings say so."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from pulse_adapters.config.home import Home
from tests.integration.cli.cli_home import eventually
from tests.integration.engine.engine_home import PATIENT, engine_of, new_home
from tests.integration.engine.test_proposals import RULE, TEST
from tests.long_form import in_campaign
from tests.unit.mcp.test_mcp_command import entry

GATES = ["compiles", "types", "loads", "tests", "replay"]
CALM = RULE.replace("quiet", "calm")


async def proposed(params: StdioServerParameters, code: str) -> Any:
    """What the client is told of its proposal."""
    async with Client(params) as client:
        answer = await client.call_tool("propose_rule", {"name": "quiet", "code": code, "test": TEST})
        text = answer.content[0].text  # type: ignore[union-attr]
        assert not answer.is_error, text
        return json.loads(text.partition("\n")[2])


@in_campaign  # `test_proposals` and `test_mcp_clients` have what it is made of
@pytest.mark.timeout(240)
def test_a_proposal_comes_into_force_where_the_settings_allow_it_and_else_waits_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = new_home(tmp_path / "home", CALM)
    home.start_daemon()
    try:
        eventually(lambda: engine_of(Home(home.path)).commit, "the first commit to be in force")
        first = engine_of(Home(home.path)).commit
        client = StdioServerParameters(**entry(home, "ada"))
        waits = asyncio.run(proposed(client, RULE))
        assert [gate["name"] for gate in waits["gates"]] == GATES
        assert (waits["in_staging"], waits["in_force"]) == (True, False)
        assert engine_of(Home(home.path)).commit == first
        home.configure(f"{PATIENT}[mcp]\npromote = true")
        home.upulse("daemon", "reload")
        done = asyncio.run(proposed(client, RULE.replace("Pass on", "Pass on, quietly")))
        assert [gate["name"] for gate in done["gates"]] == GATES
        assert (done["in_force"], done["commit"]) == (True, engine_of(Home(home.path)).commit)
        eventually(lambda: home.status()["engine"]["rules"] == ["calm", "quiet"], "it to run")
        events = home.upulse("events", "--json", "--kind", "promote-requested", "--kind", "rule-proposed")
        said = [(one["kind"], one["actor"], one["subject"]) for one in events.lines]
        assert said == [
            ("rule-proposed", "ada", "ada"),
            ("promote-requested", "ada", done["commit"]),
            ("rule-proposed", "ada", "ada"),
        ]
    finally:
        home.end_everything()
