"""`upulse explain`: what each rule would do now, or would have done, and why not."""

from typing import Annotated

import typer

from upulse_cli.options import AsJson, HomeDir
from upulse_cli.speech import console, put_json


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


def explain(
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="A moment: 10m ago, or in ISO 8601; else now.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="REVISION",
            help="staging (as it lies there), main, or a commit; else the one in force then.",
            show_default=False,
        ),
    ] = "",
    as_json: AsJson = False,
    home: HomeDir = None,
) -> None:
    """Fold a snapshot through the rules, executing nothing.

    The survival rules, and inside them plugins' and your own. Shows rule by rule who passed, added or dropped what,
    and why not: which bound, streak, silence or budget.
    """
    from pulse_core.app.engine.evaluate import UserRulesResult, evaluate_user_rules
    from pulse_core.app.explain import explain as explained
    from pulse_core.app.snapshots import CaveatedSnapshot
    from pulse_core.app.snapshots import snapshot as snapshot_at
    from pulse_core.composition import WHOLE
    from upulse_cli.moments import moment
    from upulse_cli.wiring.home import found_home, home_context

    where = found_home(home)
    snapshot, caveats = snapshot_at(home_context(where), moment(at, "--at"))
    own = UserRulesResult()
    if (where.path / "engine" / ".git").exists():
        from upulse_cli.wiring.engine import workflow_context  # slow to import

        own = evaluate_user_rules(workflow_context(where), snapshot, engine)
    told = explained(CaveatedSnapshot(snapshot, (*caveats, *own.caveats)), WHOLE, own.result).spelled()
    if as_json:
        return put_json(told)
    from upulse_cli.views.explain import tree

    return console().print(tree(told))
