"""`upulse`, also as `python -m upulse_cli`: from its imports on, Ctrl-C ends it silently, and a lack of memory is told.

So this module imports nothing but what each command needs anyway, and the command line once that holds.
"""

import os
import signal
import sys
from collections.abc import Sequence

from upulse_cli.shortages import NO_MEMORY, NO_MEMORY_WORDS, is_memory_shortage

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. argv: None in a process of the command's own, whose signals are then its own, too."""
    own = argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if own:
        # No exception: if one comes to a callback of an import, Python prints it and goes on.
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        from upulse_cli.command_line import run_command

        if own:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run_command(argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if not is_memory_shortage(error):
            raise
        os.write(2, f"{NO_MEMORY_WORDS}\n".encode())
        return NO_MEMORY


if __name__ == "__main__":
    sys.exit(main())
