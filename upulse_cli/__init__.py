"""The command line: parse, call one thing, show the answer. `wiring` alone knows which adapters are real."""
