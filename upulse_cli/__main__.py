"""`upulse`, also as `python -m upulse_cli`: runs one command and turns what went wrong into words."""

import os
import sys
import traceback
from collections.abc import Sequence

from pulse_core.model.errors import PulseError
from upulse_cli.app import app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. A traceback is for bugs, or for whoever asks with UPULSE_DEBUG=1."""
    try:
        app(args=argv, prog_name="upulse")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except PulseError as error:
        if os.environ.get("UPULSE_DEBUG", "") not in ("", "0"):
            traceback.print_exc()
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
