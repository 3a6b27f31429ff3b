"""`upulse silence`."""

from collections.abc import Iterator

from pulse_core.home import HomeLayout
from upulse_cli.capabilities.silences.commands import add_to as add_to
from upulse_cli.completing import Candidate


def silences(home: HomeLayout, _begun: str) -> Iterator[Candidate]:
    """The ids of the silences that hold."""
    from upulse_cli.capabilities.silences.state import listed

    for one in listed(home)["silences"]:
        yield Candidate(one["id"], f"{one['match']} {one['why']}".rstrip())


SOURCES = {"silence remove silence": silences}
