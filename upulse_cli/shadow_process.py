"""The process that is a shadow: begun in the background by `upulse shadow start`."""

import argparse
import os
from contextlib import suppress

from pulse_adapters.config.home import Home
from pulse_adapters.files.shadow_log import FileShadowLog
from pulse_adapters.ipc.lock import HomeLock
from pulse_adapters.ipc.umask import private_files
from pulse_core import __version__
from pulse_core.app.engine.context import revision_named
from pulse_core.app.engine.shadow import ShadowTarget, run_shadow
from pulse_core.model.errors import HomeBusy, PulseError
from upulse_cli.run_loop import run_until_ended
from upulse_cli.wiring.engine import workflow_context
from upulse_cli.wiring.home import home_context
from upulse_cli.wiring.shadow import LOCK, READY


@private_files()
def main() -> None:
    """Be a shadow. Whoever has started it reads one line: `ready`, or why not."""
    parser = argparse.ArgumentParser(prog="upulse_cli.shadow_process", description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--tell", type=int, required=True)
    asked = parser.parse_args()
    home = Home.resolve(asked.home)

    def tell(words: str) -> None:
        with suppress(OSError):
            os.write(asked.tell, words.encode())
            os.close(asked.tell)

    os.nice(5)
    try:
        with HomeLock(home.run / LOCK, __version__):
            engine = workflow_context(home_context(home), is_live=True)
            what = ShadowTarget(
                engine, revision_named(engine.repository, asked.engine), FileShadowLog(home.path)
            )
            run_until_ended(run_shadow(what, lambda: tell(READY)))
    except HomeBusy as error:
        tell(f"another one runs (process {error.pid})")
        raise
    except Exception as error:
        tell(str(error) if isinstance(error, PulseError) else f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
