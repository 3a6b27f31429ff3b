"""`upulse backup`, `restore` and `verify`: a copy of the home elsewhere, and back; is the log what was written?"""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pulse_core.model.text import count, one_line
from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import progress_line, put, put_json, say

if TYPE_CHECKING:
    from pulse_core.app.backup import Restored


def backup(
    destination: Annotated[
        str, typer.Argument(metavar="DEST", help="A new directory for it, outside of the home.")
    ],
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Copy the home to a new directory.

    The log, the objects that it names, vitals, settings and the engine, read back from the disk before it counts.
    A running daemon is not disturbed. Exits 1 if the engine is broken, also in the backup that was made then.
    """
    from pulse_core.model.text import format_size
    from upulse_cli.wiring.backup import backups_of
    from upulse_cli.wiring.engine import engine_fault

    found = open_home(home)
    with progress_line("looking …") as progress:
        made = backups_of(found.layout, lambda: engine_fault(found)).make(destination, progress)
    if as_json:
        put_json(made._asdict())
        raise typer.Exit(1 if made.engine_fault else 0)
    size = f"{count(made.seq, 'row')} and {count(made.files, 'file')}, {format_size(made.bytes)}"
    say(f"Backed up to {made.path}: {size}.")
    if made.accepted:
        say(f"It carries the damage that was accepted: {made.accepted}")
    for line in left_out_in_words(made.left_out):
        say(one_line(line))
    if made.engine_fault:
        say(one_line(f"BROKEN: the engine in it: {made.engine_fault}"))
        say("Keep the last backup whose engine is whole; of that, put BACKUP/engine back.")
        raise typer.Exit(1)


def left_out_in_words(names: Sequence[str]) -> Iterator[str]:
    """What is not in a backup, and why."""
    snapshots = [name for name in names if name.startswith("objects/")]
    if folders := [name for name in names if name not in snapshots]:
        yield f"LEFT OUT: {count(len(folders), 'folder')} too deep for a backup: {folders[0]}"
    if snapshots:
        yield f"LEFT OUT: {count(len(snapshots), 'snapshot')} of ticks, altered in the home: {snapshots[0]}"


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

    While no daemon runs. What was there is moved aside into the home's damaged/, and nothing is overwritten. Exits 1 if
    the engine is broken afterwards: one that was there is left as it is.
    """
    from upulse_cli.wiring.backup import backups_of
    from upulse_cli.wiring.engine import engine_fault
    from upulse_cli.wiring.home import home_context, meant_home
    from upulse_cli.wiring.shadow import end_if_running

    where = meant_home(home)
    with progress_line("looking …") as progress:
        had_engine = os.path.lexists(where.path / "engine")
        restored, earlier = backups_of(where).restore(source, tail, lambda: end_if_running(where), progress)
        progress("reading the engine …")
        fault = engine_fault(home_context(where))
    if as_json:
        put_json(restored._replace(engine_fault=fault)._asdict())
        raise typer.Exit(1 if fault else 0)
    if earlier:
        say(f"First the restore from {earlier.source} was finished, which had been broken off.")
    *words, last = restored_in_words(restored)
    for line in words:
        say(line)
    if fault:
        say(one_line(f"NOT RESTORED: the engine: {fault}"))
        if had_engine:
            say(
                f"An engine that is there is left as it is: move {where.path / 'engine'} away, and restore again."
            )
        else:
            say("The backup has no engine that is whole; take engine/ from an earlier one.")
        raise typer.Exit(1)
    say(last)


def restored_in_words(restored: "Restored") -> Iterator[str]:
    """What came of a restore, in words."""
    from pulse_core.model.moment import iso
    from upulse_cli.time_args import local

    made = local(iso(restored.made_at), date=True, named=True)
    yield f"Restored: {count(restored.rows, 'row')} from the backup of {made}."
    if restored.salvaged:
        yield f"{count(restored.salvaged, 'row')} after them were still sound and are kept."
    why = f": {restored.fault}" if restored.fault else ""
    if restored.lost:
        yield f"LOST: {count(restored.lost, 'row')} that the log once had{why}."
    elif why:
        yield f"LOST: perhaps rows after them, nobody knows how many{why}."
    yield from restored.notes
    if restored.kept_at:
        yield f"What was there is kept in {restored.kept_at}."
    yield "Next: upulse verify, then upulse daemon start"


def verify(
    anchor: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|journal", help="An anchor that the settings and the log don't name, too."),
    ] = None,
    engine: Annotated[
        bool,
        typer.Option("--engine/--no-engine", help="Have git read all of the engine, too, if it is yours."),
    ] = True,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Check the whole log, and the engine.

    Names the first row that was altered or is missing, and exits 1 if there is one. Indexes, the last backup and the
    anchors outside of the home are compared with it: those that the settings and the log name, and the journal. Exits 1,
    too, if an anchor file that the log names is gone, or git finds the engine broken.
    """
    from upulse_cli.wiring.verify import note_of_snapshots, verify_log

    where, broken = open_home(home), ""
    with progress_line("reading the log …") as progress:  # a million rows take seconds
        verdict = verify_log(where.layout, anchor or ())
        verdict = verdict._replace(notes=(*verdict.notes, *note_of_snapshots(where.layout)))
        if engine:
            from upulse_cli.wiring.engine import engine_fault

            progress("reading the engine …")
            broken = engine_fault(where)
    if as_json:
        shown = {"rows": verdict.rows, "took_ms": verdict.took_ms, "fault": verdict.fault}
        shown |= {"is_accepted": verdict.is_accepted, "notes": list(verdict.notes), "engine_fault": broken}
        shown["anchored"] = dict(verdict.anchored)
        put_json(shown)
    elif verdict.fault:
        good = "fit each other" if verdict.fits_itself else "before it are good"
        rows = f"; {count(verdict.rows, 'row')} {good}" if verdict.rows else ""
        put(one_line(f"damaged: {verdict.fault}{rows}"))
    else:
        put(f"ok: {count(verdict.rows, 'row')} verified in {verdict.took_ms} ms")
    for note in () if as_json else verdict.notes:
        say(note)
    if broken and not as_json:
        put(one_line(f"broken: the engine: {broken}"))
    raise typer.Exit(1 if verdict.fault or broken else 0)
