"""Guidance, the MCP server and guided runs stay small enough to be read: whoever adds to them takes something away."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = ("pulse_core", "pulse_adapters", "upulse_cli/capabilities")
NAMES = ("guidance", "mcp", "mcp_http", "guided_runs")
MOST = 3_000


def test_guidance_and_mcp_have_fewer_than_three_thousand_lines_together() -> None:
    files = [file for above in FOLDERS for name in NAMES for file in (ROOT / above / name).rglob("*.py")]
    assert len(files) > 20
    assert sum(len(file.read_text().splitlines()) for file in files) < MOST
