"""Every setting as markdown, for the documentation, derived from the models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from pulse_adapters.config.catalogue import Setting, find_setting, groups, settings_of
from pulse_adapters.config.template import group_purpose, has_header, header
from pulse_adapters.config.toml_writer import value_as_toml

HEAD = "| key | type | default | meaning |\n|---|---|---|---|"


def reference() -> str:
    """A chapter for each group: a table of key, allowed values, default, meaning.

    Inner tables of one kind share a chapter after that of the group that contains them.
    """
    shared: dict[tuple[str, type[BaseModel]], list[str]] = {}
    for path, model in groups():
        around = path if has_header(path) else path.rpartition(".")[0]
        shared.setdefault((around, model), []).append(path)
    return "\n".join(line for (_, model), paths in shared.items() for line in _chapter(paths, model))


def _chapter(paths: Sequence[str], model: type[BaseModel]) -> Iterator[str]:
    yield f"### {_title(paths)}\n\n{group_purpose(model)}\n"
    yield HEAD
    outer = [setting.default for path in paths if (setting := find_setting(path.split("."))[1])]
    for setting in settings_of(model):
        cells = (
            f"`{setting.key}`",
            ", ".join(filter(None, [setting.kind, setting.bounds])),
            _default(setting, outer),
            setting.field.description or "",
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def _title(paths: Sequence[str]) -> str:
    if has_header(paths[0]):
        return f"`{header(paths[0])}`"
    around, keys = paths[0].rpartition(".")[0], [path.rpartition(".")[2] for path in paths]
    return f"{', '.join(f'`{key}`' for key in keys)} in `{header(around)}`"


def _default(setting: Setting, outer: Sequence[Any]) -> str:
    """The default, which the defaults of the tables around it may each give differently."""
    if setting.field.is_required():
        return "required"
    given = [table.get(setting.key) for table in outer if isinstance(table, Mapping)] or [setting.default]
    if any(value != given[0] for value in given):
        return "see above"
    return "not set" if given[0] is None else f"`{value_as_toml(setting, given[0])}`"
