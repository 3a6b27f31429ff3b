"""`upulse redact`: takes what an event says out of the log."""

from typing import Annotated

import typer

from pulse_core.model.text import count
from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import progress_line, put_json, say


def redact(
    events: Annotated[
        list[str], typer.Argument(metavar="EVENT…", help="Ids, or enough of their beginnings.")
    ],
    why: Annotated[str, typer.Option("--why", metavar="WORDS", help="A reason, kept in the log.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Take what events say out of the log, for ever.

    Their rows stay, without data, with a new event that says who took it out, why, and the hash of what was there. Then
    it says in which files of the home and of its last backup the same text can still be read.
    """
    from pulse_core.app.redact import redact as redacted_in
    from pulse_core.app.redact import redactable, texts_of
    from upulse_cli.wiring.redact import remains

    where = open_home(home)
    found = redactable(where, events)
    for event in found:
        say(f"{event.id}  {event.kind}  {event.subject}")
    if not yes:
        typer.confirm(
            f"Take what {count(len(found), 'event')} said out of the log for ever?", abort=True, err=True
        )
    done = redacted_in(where, found, why)
    with progress_line("looking where else it is …"):
        left = remains(where.layout, texts_of(found))
    if as_json:
        return put_json({"redacted": [one._asdict() for one in done], "remains": list(left)})
    say(f"Redacted: {count(len(done), 'event')}. The chain holds: upulse verify")
    if any(one.in_memory for one in done):
        say(
            "The daemon still has it in memory; upulse daemon restart forgets it, and makes the checkpoints anew."
        )
    for path in left:
        say(f"STILL THERE: {path}")
    say("Not looked at: other backups, the journal, notices that went out, and free blocks of the disk.")
    return None
