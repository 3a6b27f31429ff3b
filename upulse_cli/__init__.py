"""The command line: parse, call one thing, show the answer. `wiring` alone knows which adapters are real."""

import upulse_cli.byte_code  # noqa: F401 - before all else is imported
