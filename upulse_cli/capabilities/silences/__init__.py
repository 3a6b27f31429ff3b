"""`upulse silence`."""

from collections.abc import Iterator

from pulse_core.home import HomeLayout
from upulse_cli.capabilities.silences.commands import add_to as add_to


def silences(home: HomeLayout, _begun: str) -> Iterator[str]:
    """The ids of the silences that hold."""
    from upulse_cli.capabilities.silences.state import listed

    for one in listed(home)["silences"]:
        yield one["id"]


SOURCES = {"silences": silences}
