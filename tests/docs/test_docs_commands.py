"""Whoever follows a page sees what the page shows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.docs_console import FENCE, PAGES, commands
from tests.docs.docs_shell import Shell

UNRUN = {
    "git clone REPOSITORY pulse && cd pulse",
    "git pull && .venv/bin/pip install .",
    "python3 -m venv .venv && .venv/bin/pip install .",
    'export PATH="$PWD/.venv/bin:$PATH"',
    "make run     # set up and run it here, guarding one harmless demo process",
    "make test    # set up and pass all tests",
    "make run",
    "make bench",
    "make setup-dev",
    ".venv/bin/pip install pre-commit",
    ".venv/bin/pre-commit install",
    "upulse daemon restart",
    # These run in tests/acceptance/systemd.
    "sudo python3 -m venv /opt/pulse && sudo /opt/pulse/bin/pip install .",
    "sudo /opt/pulse/bin/upulse init --home /var/lib/pulse",
    "sudo /opt/pulse/bin/upulse daemon install --home /var/lib/pulse",
    "sudo /opt/pulse/bin/upulse status --home /var/lib/pulse",
    # This one runs in tests/integration/files.
    "upulse effect add clean-paths --key try --param dry_run=true --wait",
    # These run in tests/integration/cli and tests/acceptance, on a log that was deleted.
    "upulse daemon stop",
    "upulse doctor --repair",
    "upulse daemon start",
    # These run in tests/unit/guidance.
    "cd my-project",
    "pip install 'upulse[mcp]'",
    "upulse guidance start",
    # These run in tests/acceptance/systemd.
    "sudo .venv/bin/upulse daemon install --home ~/.upulse    # a unit of the machine, run as the home's owner",
    "sudo .venv/bin/upulse daemon install --home ~/.upulse",
    "upulse daemon install --user                             # or a unit of yours",
    "upulse daemon install --user",
    "upulse daemon uninstall",
    "systemctl status upulse",
    "loginctl enable-linger",
}
INFOS = {"python", "", "console", "console no-run", "toml", "text", "mermaid"}


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path, own_processes=False)
    yield shell
    shell.close()


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if commands(page) and page.name != "README.md"],
    ids=lambda page: page.name,
)
def test_every_command_of_a_page_does_what_the_page_shows(page: Path, shell: Shell) -> None:
    for command in commands(page):
        shell.follow(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_not_run_is_known_and_says_why(page: Path) -> None:
    assert {command.text for command in commands(page, "console no-run")} <= UNRUN
    for info, block in FENCE.findall(page.read_text()):
        assert info.strip() in INFOS
        assert "no-run" not in info or block.startswith("# ")
