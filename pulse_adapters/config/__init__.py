"""The home directory and its `config.toml`: where things lie, and what a person decided.

Nothing is imported here, since the command line starts with `home` and must not wait for pydantic; nothing in
this package fixes or guesses a setting: what cannot be used is refused, every fault at once, each with its line.
"""
