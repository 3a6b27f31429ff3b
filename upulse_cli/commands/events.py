"""`upulse events`, `incidents` and `state`: what happened, what was done, did it help, and what the log says at a moment."""

from typing import Annotated

import typer

from pulse_core.model.text import one_line
from upulse_cli.options import AsJson, At, HomeDir, Since, completed_by, open_home
from upulse_cli.output import draw, put_hanging, put_json, put_line, say


def state(
    part: Annotated[
        str | None,
        typer.Argument(
            metavar="PART",
            help="Only this projection, as `processes`; else all.",
            autocompletion=completed_by("projections"),
        ),
    ] = None,
    at: At = None,
    home: HomeDir = None,
) -> None:
    """Show what the log says, now or at a moment.

    Every projection as JSON: the log folded up to the last event before that moment.
    """
    from pulse_core.app.projections import described_projections
    from upulse_cli.time_args import moment_arg

    found = described_projections(open_home(home), moment_arg(at, "--at"), part)
    for words in found.caveats:
        say(words)
    put_json(found.spelled(part))


LAST = 50


def events(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what happens from now on.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="10m ago, 15:20, yesterday, monday, a time in ISO 8601, or after a row's number.",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only this kind; may be given often.",
            autocompletion=completed_by("kinds"),
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            "--subject",
            metavar="NAME",
            help="Only about this process or effect.",
            autocompletion=completed_by("processes and effects"),
        ),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option("-n", metavar="COUNT", min=0, help="Only the newest so many.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Print what happened, oldest first.

    All that matches; on a terminal the newest 50, if nothing says since when or how many.
    """
    import sys

    from pulse_core.app import event_filter
    from pulse_core.ports.readers import ALL_EVENTS
    from upulse_cli.time_args import since_arg, zone
    from upulse_cli.views.events import line

    where = open_home(home)
    if last is None and since is None and sys.stdout.isatty():
        last = LAST
    from_ = since_arg(since) if since else ALL_EVENTS
    wanted = event_filter.EventFilter(tuple(kind or ()), subject, from_, last)
    if not as_json:
        say(f"times in {zone()}")
    is_empty = True
    for event in event_filter.events(where, wanted, and_new=follow):
        text = one_line(line(event))
        put_line(event) if as_json else put_hanging(text, text.index(event["kind"]))
        is_empty = False
    if subject and is_empty:
        say(f"no event that matches is about {subject!r}")


def incidents(
    since: Since = "24h",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Tell what happened, and what was done.

    One story an episode: what was seen, what Pulse did about it, and whether it helped.
    """
    from pulse_core.app import incidents as app
    from pulse_core.app.status import unwritten_words, why_unheard
    from upulse_cli.time_args import moment_arg, when_words

    where = open_home(home)
    from_ = moment_arg(since, "--since")
    told = [one.spelled() for one in app.incidents(where, from_)]
    if as_json:
        put_json(told)
    else:
        from upulse_cli.views.incidents import tree

        draw(tree(told, when_words(since), from_ or 0, where.daemon.lock_holder() is not None))
    if words := why_unheard(where):  # last, since a daemon that hangs is waited for
        if any(one["ended"] is None for one in told):
            say(f"Nobody sees what becomes of the ongoing ones: {words}")
    elif words := unwritten_words(where):
        say(f"Not in it: {words}")
