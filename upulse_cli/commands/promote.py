"""`upulse promote`, `deploy` and `rollback`: which of the user's rules are in force."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from upulse_cli.options import AsJson, HomeDir, Why, open_home
from upulse_cli.output import put, put_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulse_core.app.context import HomeContext
    from pulse_core.app.engine.candidate_checks import GateResult
    from pulse_core.app.engine.promote import Promoted

LATER = "no daemon runs that answers; it is answered when one does (upulse daemon start)"
Message = Annotated[
    str, typer.Option("--message", "-m", metavar="WORDS", help="What it is for, kept with the commit.")
]
Gates = Annotated[
    list[str], typer.Option("--gate", metavar="NAME", help="Only this gate, and others so named.")
]
Skips = Annotated[list[str], typer.Option("--skip", metavar="NAME", help="Leave this gate out; needs --why.")]


def promote(
    message: Message = "",
    gate: Gates = [],  # noqa: B006 - typer's way to say that there may be none
    skip: Skips = [],  # noqa: B006
    why: Why = "",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Bring the rules of staging into force.

    They are committed, merged into main and must pass the gates: compiles, types, loads, tests, replay. Then the
    daemon loads them without missing a tick. If anything says no, nothing is changed.
    """
    done = promoted(open_home(home), message, gate, skip, why, as_json)
    if as_json:
        return put_json({"commit": done.commit, "gates": spelled(done.gates), "answer": done.answer})
    put_commit(done.commit)
    return say(
        LATER if done.answer is None else f"{done.commit[:12]} is in force; undo it with: upulse rollback"
    )


def deploy(
    message: Message = "",
    gate: Gates = [],  # noqa: B006
    skip: Skips = [],  # noqa: B006
    why: Why = "",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Start the daemon if none runs, then promote."""
    from pulse_core.app.status import daemon_status
    from upulse_cli.commands import daemon

    if daemon_status(open_home(home))["state"] == "stopped":
        daemon.start(foreground=False, accept_damage=False, home=home)
    promote(message, gate, skip, why, as_json, home)


def rollback(
    to: Annotated[
        str, typer.Option("--to", metavar="COMMIT", help="Which commit; else the one before this one.")
    ] = "",
    why: Why = "",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Bring an earlier commit of the engine back into force.

    The one that is rejected stays as a branch.
    """
    from pulse_core.app.engine import promote as engine_promote
    from upulse_cli.wiring.engine import workflow_context

    engine = workflow_context(open_home(home))
    answer = engine_promote.rollback(engine, to, why)
    # Who gets JSON waits as well, and finds main where the answer says.
    staging = engine_promote.staging_after_rollback(engine.repository, answer) if answer else ""
    if as_json:
        put_json(answer)
    elif answer is None:
        say(LATER)
    else:
        data = answer["data"]
        put_commit(answer["subject"])
        say(f"{data['to'][:12]} is in force again; {data['rejected'][:12]} is kept as {data['kept_as']}")
        say(staging)


def promoted(
    home: "HomeContext", message: str, gates: list[str], skips: list[str], why: str, as_json: bool
) -> "Promoted":
    """Promote, saying each gate's word as it comes; a gate is not left out without a reason."""
    if skips and not why:
        raise typer.BadParameter("say why with --why: it is recorded", param_hint="--skip")
    from pulse_core.app.engine import promote as engine_promote
    from upulse_cli.wiring.engine import workflow_context

    skip = dict.fromkeys(skips, why)
    engine = workflow_context(home)
    plan = engine_promote.Plan(message, engine.author, only=gates, skip=skip, tell=say_gate, note=say)
    try:
        return engine_promote.promote(engine, plan)
    except engine_promote.NotPromoted as refused:
        if as_json:
            put_json({"commit": refused.commit, "gates": spelled(refused.gates), "answer": None})
        raise


def say_gate(passed: "GateResult") -> None:
    """A gate's word, with its time; what it has to say besides follows beneath it, but a no is the command's error."""
    words = "" if passed.outcome == "failed" else passed.words
    first, *more = words.splitlines() or [""]
    say(f"{passed.name:<10} {passed.outcome:<8} {passed.took:6.2f} s  {first}")
    for line in more:
        say(f"  {line}")


def put_commit(commit: str) -> None:
    """The whole hash for whoever reads stdout; at a terminal the sentence that follows names it."""
    if not sys.stdout.isatty():
        put(commit)


def spelled(gates: "Sequence[GateResult]") -> list[dict[str, object]]:
    """The gates' words for scripts."""
    return [{**gate._asdict(), "took": round(gate.took, 3)} for gate in gates]
