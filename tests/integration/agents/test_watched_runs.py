"""Runs are begun in safe mode, too: so they are watched in it."""

from pathlib import Path

from pulse_adapters.config.home import Home
from pulse_adapters.sqlite.open_log import Opening
from pulse_core.agents.rules import KEY
from upulse_cli.wiring.daemon import real_daemon


async def test_no_safe_mode_leaves_out_who_watches_runs(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.config.write_text("# nothing is guarded\n")
    async with real_daemon(home, Opening()) as daemon:
        assert any(one.name == KEY for one in daemon.parts.watchers)
        assert not any(one.name == KEY for one in daemon.parts.optional_watchers)
