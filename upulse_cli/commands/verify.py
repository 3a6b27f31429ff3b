"""`upulse verify`: is the log what was written?"""

import typer

from pulse_core.model.text import one_line
from upulse_cli.options import AsJson, HomeDir, open_home
from upulse_cli.output import progress_line, put, put_json


def verify(as_json: AsJson = False, home: HomeDir = None) -> None:
    """Check the whole log.

    Names the first row that was altered or is missing, and exits 1 if there is one.
    """
    from upulse_cli.wiring.backup import verify_log

    where = open_home(home)
    with progress_line("reading the log …"):  # a million rows take seconds
        verdict = verify_log(where.layout)
    if as_json:
        put_json({"rows": verdict.rows, "took_ms": verdict.took_ms, "fault": verdict.fault})
    elif verdict.fault:
        put(one_line(f"damaged: {verdict.fault}; {verdict.rows} rows before it are good"))
    else:
        put(f"good: {verdict.rows} rows, read in {verdict.took_ms} ms")
    raise typer.Exit(1 if verdict.fault else 0)
