"""The commented `config.toml` of a new home, and the reference for the documentation: both read off the models."""

import textwrap
from collections.abc import Iterator

from pydantic import BaseModel

from pulse_adapters.config.catalogue import Setting, groups, settings_of
from pulse_adapters.config.writing import key, spell
from pulse_core.settings import ProcessSettings, Settings

_TOP = """\
# What Pulse guards here, and how. Every setting is listed with its default, commented out: take the '#' away
# to change it. A key without a default shows an example instead ("not set"). After a change:
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
# As soon as it is up it counts as healthy, and a healthy process is restarted at once, however often you kill it.
restart = { healthy_after = "0s" }
"""

_PROCESS = """\

# A guarded process. Copy this block for each one; keep one way to recognise it (pid_file, systemd_unit, match
# or tcp; none for what Pulse starts itself) and one way to bring it back (start, command or systemd_unit).
"""


def template(demo: bool = False) -> str:
    """The text of a new `config.toml`; with `demo`, one guarded process in it."""
    parts = [_TOP, *(_group(path, model) for path, model in groups() if not path.startswith("process"))]
    parts += [_PROCESS + "#[[process]]\n" + "".join(map(_entry, settings_of(ProcessSettings)))]
    return "".join(parts) + (_DEMO if demo else "")


def reference() -> str:
    """A markdown table for each group: key, what may be written, default, meaning."""
    return "\n".join(line for path, model in groups(Settings) for line in _chapter(path, model))


def _group(path: str, model: type[BaseModel]) -> str:
    return f"\n# {_about(model)}\n[{path}]\n" + "".join(map(_entry, settings_of(model)))


def _about(model: type[BaseModel]) -> str:
    """What a group is for: its docstring without the name of its table."""
    words = " ".join((model.__doc__ or "").split())
    words = words.split("`: ", 1)[1] if words.startswith("`[") else words
    return words[0].upper() + words[1:]


def _entry(setting: Setting) -> str:
    """The meaning as a comment, then the setting itself as a line that only lacks its '#'."""
    value = setting.example if _unset(setting) else setting.default
    about = _wrapped(_words(setting), "# ")
    for inner in settings_of(setting.inner) if setting.inner else ():
        about += _wrapped(f"{inner.key}: {_words(inner)}", "#   ")
    return "\n".join(about) + f"\n#{key(setting.key)} = {spell(setting, value)}\n"


def _words(setting: Setting) -> str:
    words = ", ".join(filter(None, [setting.field.description, setting.bounds]))
    if _unset(setting):
        return f"{words} (not set)"
    return (
        words if setting.default or not setting.example else f"{words}; as {spell(setting, setting.example)}"
    )


def _wrapped(words: str, start: str) -> list[str]:
    return textwrap.wrap(words, 108, initial_indent=start, subsequent_indent=start + "  ")


def _unset(setting: Setting) -> bool:
    return setting.default is None


def _chapter(path: str, model: type[BaseModel]) -> Iterator[str]:
    title = {"process": "[[process]]", "process.restart": "restart = { … }"}.get(path, f"[{path}]")
    yield f"### `{title}`\n\n{_about(model)}\n"
    yield "| key | type | default | meaning |\n|---|---|---|---|"
    for setting in settings_of(model):
        cells = (f"`{setting.key}`", _type(setting), _default(setting), setting.field.description or "")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _type(setting: Setting) -> str:
    return ", ".join(filter(None, [setting.kind, setting.bounds]))


def _default(setting: Setting) -> str:
    if setting.field.is_required():
        return "required"
    if setting.inner:
        return "see below"
    return "not set" if _unset(setting) else f"`{spell(setting, setting.default)}`"
