"""`upulse backup` and `restore`: a copy of the home elsewhere, and back."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.speech import count, put_json, say

if TYPE_CHECKING:
    from upulse_cli.backup.restoring import Outcome


def add_to(app: typer.Typer) -> None:
    """Add both commands."""
    app.command()(backup)
    app.command()(restore)


def backup(
    destination: Annotated[
        str, typer.Argument(metavar="DEST", help="A new directory for it, outside of the home.")
    ],
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Copy the home to a new directory.

    The log, the objects that it names, vitals, settings and the engine, read back from the disk before it counts.
    A running daemon is not disturbed.
    """
    from pulse_core.model.sizes import spell_size
    from upulse_cli.access import found_home
    from upulse_cli.backup.making import back_up, described

    with aloud() as told:
        path, manifest = back_up(found_home(home), destination, told)
    if as_json:
        return put_json({"path": str(path), **described(manifest)})
    size = (
        f"{count(manifest.seq, 'row')} and {count(len(manifest.files), 'file')}, {spell_size(manifest.bytes)}"
    )
    say(f"Backed up to {path}: {size}.")
    if manifest.accepted:
        say(f"It carries the damage that was accepted: {manifest.accepted}")
    return None


@contextmanager
def aloud() -> Iterator[Callable[[str], None]]:
    """A line on a terminal that says what is being done."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    from rich.console import Console

    with Console(stderr=True).status("looking …") as line:
        yield line.update


def restore(
    source: Annotated[str, typer.Argument(metavar="SRC", help="What `upulse backup` made.")],
    tail: Annotated[
        bool,
        typer.Option(
            "--tail/--no-tail",
            help="Keep the rows after the backup's last one that are still sound in the log that is there.",
        ),
    ] = True,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Put the home back from a backup.

    While no daemon runs. What was there is moved aside into the home's damaged/, and nothing is overwritten.
    """
    from pulse_adapters.config.home import Home
    from upulse_cli.backup.restoring import restore as put_back

    with aloud() as told:
        outcome, earlier = put_back(Home.resolve(home), source, tail, told)
    if as_json:
        return put_json(outcome)
    if earlier:
        say(f"First the restore from {earlier['source']} was finished, which had been broken off.")
    for words in said(outcome):
        say(words)
    return None


def said(outcome: "Outcome") -> Iterator[str]:
    """What came of a restore, in words."""
    from pulse_core.model.moment import iso
    from upulse_cli.moments import local

    made = local(iso(outcome["made_at"]), date=True)
    yield f"Restored: {count(outcome['rows'], 'row')} from the backup of {made}."
    if outcome["salvaged"]:
        yield f"{count(outcome['salvaged'], 'row')} after them were still sound and are kept."
    why = f": {outcome['fault']}" if outcome["fault"] else ""
    if outcome["lost"]:
        yield f"LOST: {count(outcome['lost'], 'row')} that the log once had{why}."
    elif why:
        yield f"LOST: perhaps rows after them, nobody knows how many{why}."
    yield from outcome["notes"]
    if outcome["kept_at"]:
        yield f"What was there is kept in {outcome['kept_at']}."
    yield "Next: upulse verify, then upulse daemon start"
