"""The commented `config.toml` of a new home, derived from the models."""

import textwrap
from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel

from pulse_adapters.config.catalogue import Setting, find_setting, groups, settings_of
from pulse_adapters.config.toml_writer import key, value_as_toml

_TOP = """\
# What Pulse guards here, and how. Every setting is listed with its default, commented out: take the '#' away
# to change it. A key without a default shows an example instead ("not set", "required"). After a change:
#   upulse config check && upulse daemon reload
"""

_DEMO = """\

# Something harmless to guard, so that you can see Pulse work. Kill it and it is back at once:
#   upulse process list        (shows its pid)
#   kill -9 PID
#   upulse events              (shows what Pulse did, and why)
[[process]]
name = "demo"
start = ["sleep", "infinity"]
# As soon as it is up it counts as healthy, and its budget is large: it is restarted at once, however often you kill it.
restart = { max = 1000, healthy_after = "0s" }
"""


@cache
def template(demo: bool = False) -> str:
    """The text of a new `config.toml`; with `demo`, one guarded process in it."""
    text = _TOP
    for path, model in groups():
        if has_header(path):
            top = header(path)
            begin = ["# Copy this block for each one.", f"#{top}"] if top.startswith("[[") else [top]
            lines = [*_wrap(group_purpose(model), "# ", "# "), *begin, *_entries(model)]
            text += "\n" + "\n".join(lines) + "\n"
    return text + (_DEMO if demo else "")


def has_header(path: str) -> bool:
    """Whether the group of this dotted name has a header of its own."""
    setting = find_setting(path.split("."))[1]
    return bool(setting and setting.headed)


def header(path: str) -> str:
    """The header of the group of this dotted name, as `[daemon]` or `[[process]]`."""
    setting = find_setting(path.split("."))[1]
    return f"[[{path}]]" if setting and setting.kind == "tables" else f"[{path}]"


def group_purpose(model: type[BaseModel]) -> str:
    """The purpose of a group: its docstring without the name of its table."""
    words = " ".join((model.__doc__ or "").split())
    words = words.partition("`: ")[2] or words
    return words[0].upper() + words[1:]


def _entries(model: type[BaseModel]) -> Iterator[str]:
    """The meaning of each setting as a comment, then the setting itself as a line that only lacks its '#'.

    The keys of inner tables of one kind are explained at the first of them.
    """
    explained: dict[type[BaseModel], str] = {}
    for setting in settings_of(model):
        like = explained.setdefault(setting.inner, setting.key) if setting.inner else setting.key
        as_there = "" if like == setting.key else f"; keys as in {like}"
        yield from _wrap(_words(setting) + as_there, "# ")
        for inner in settings_of(setting.inner) if setting.inner and not as_there else ():
            yield from _wrap(f"{inner.key}: {_words(inner)}", "#   ")
        value = setting.example if setting.default is None else setting.default
        yield f"#{key(setting.key)} = {value_as_toml(setting, value)}"


def _words(setting: Setting) -> str:
    words = "; ".join(filter(None, [setting.field.description, setting.bounds]))
    if setting.default is None:
        return f"{words} ({'required' if setting.field.is_required() else 'not set'})"
    if setting.default or not setting.example:
        return words
    return f"{words}; as {value_as_toml(setting, setting.example)}"


def _wrap(words: str, start: str, then: str = "") -> list[str]:
    return textwrap.wrap(
        words, 108, initial_indent=start, subsequent_indent=then or start + "  ", break_on_hyphens=False
    )
