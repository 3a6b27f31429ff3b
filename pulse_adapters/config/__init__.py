"""The home directory and its `config.toml`: paths and user settings.

Nothing is imported here, since the command line starts with `home` and must not wait for pydantic; nothing in
this package corrects or guesses a setting: an invalid file is refused with every fault at once, each with its line.
"""
