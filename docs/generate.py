"""Writes the generated parts of the documentation anew: `python -m docs.generate`, or `make docs`.

A part stands between `<!-- generated: NAME -->` and `<!-- /generated -->`; what is outside is left alone.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer.main
from pydantic import BaseModel

import pulse_core.testing
from docs.json_reference import answers
from docs.settings_reference import reference
from pulse_core.composition import ACTIONS, KINDS
from pulse_core.model.kinds import Effect
from pulse_core.model.names import SETTLING
from pulse_core.model.payload import Payload, Role, Wake
from pulse_core.projections.conditions import Condition, Conditions, Measure
from pulse_core.projections.effects import MOVES, OPEN, Phase
from pulse_core.projections.processes import Intent, LastStart, ProcessHistory, Restart, RestartRequest
from upulse_cli.app import app

DOCS = Path(__file__).parent
WIDTH = 100
PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
WHO = {Role.AGENT: "agents", Role.PERSON: "the owner, root", Role.DAEMON: "the daemon"}
WHEN = {Wake.NEVER: "no", Wake.SOON: "soon", Wake.NOW: "at once"}


def pages() -> list[Path]:
    """Every page of the documentation that may hold generated parts."""
    return sorted(DOCS.rglob("*.md"))


def renewed(text: str) -> str:
    """The page with its generated parts as they should be."""
    return PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]().strip()}\n\n{part[3]}", text)


def effect_life() -> str:
    """The life of an effect as a mermaid diagram."""
    first, ends = f"    [*] --> {Phase.PENDING.value}: {Effect.kind}", [p for p in Phase if p not in OPEN]
    moves = [f"    {was.value} --> {then.value}: {kind}" for (was, kind), then in MOVES.items()]
    return "\n".join(
        ["```mermaid", "stateDiagram-v2", first, *moves, *(f"    {end.value} --> [*]" for end in ends), "```"]
    )


def event_kinds() -> str:
    """A table of every kind of event: what it says, who may append it, whether it wakes the tick."""
    ours = [kind for kind in KINDS.values() if kind.__module__.startswith("pulse_core.")]
    head = "| kind | what it says | its data | appended by | wakes the tick |\n|---|---|---|---|---|"
    return "\n".join([head, *map(_row, ours)])


def _row(kind: type[Payload]) -> str:
    name = f"**`{kind.kind}`**" if kind.kind in SETTLING else f"`{kind.kind}`"
    says = " ".join((kind.__doc__ or "").split())
    data = ", ".join(f"`{field}`" for field in kind.model_fields)
    return f"| {name} | {says} | {data} | {WHO[kind.by]} | {WHEN[kind.wakes]} |"


def commands() -> str:
    """The help of every command, in the order of the command tree."""
    return "\n\n".join(_chapters(typer.main.get_command(app), "upulse"))


def _chapters(command: Any, path: str) -> Iterator[str]:
    context = command.context_class(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH)
    told = textwrap.dedent(command.get_help(context)).strip()
    yield f"## `{path}`\n\n```text\n{told}\n```"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _chapters(inner, f"{path} {name}")


def actions() -> str:
    """A table of what every daemon can carry out."""
    head = "| action | what it does | its params |\n|---|---|---|"
    rows = (f"| `{one.name}` | {one.summary} | {_params(one.params)} |" for one in ACTIONS.values())
    return "\n".join([head, *rows])


def _params(model: type[BaseModel]) -> str:
    told = (
        f"`{name}`{'' if field.is_required() else ' (may be left out)'}"
        + (f": {field.description}" if field.description else "")
        for name, field in model.model_fields.items()
    )
    return "; ".join(told)


def names_of_rules() -> str:
    """What authors of rules import, with all that it has."""
    ours = [(pulse_core, name) for name in pulse_core.__all__]
    tests = [(pulse_core.testing, name) for name in pulse_core.testing.__all__]
    return "\n\n".join(_name_chapter(module, name) for module, name in (*ours, *tests))


RECORDED: Mapping[str, type] = {
    "curr.conditions": Conditions,
    "curr.conditions[NAME]": Condition,
    "curr.conditions[NAME].measures[0]": Measure,
    "curr.process(NAME)": ProcessHistory,
    "curr.process(NAME).stop": Intent,
    "curr.process(NAME).request": RestartRequest,
    "curr.process(NAME).recent[0]": Restart,
    "curr.process(NAME).start": LastStart,
}
"""What rules read of conditions and processes, by how they reach it."""


def recorded_values() -> str:
    """What conditions and processes have for rules."""
    return "\n\n".join(_class_chapter(f"### `{path}`", value) for path, value in RECORDED.items())


def _name_chapter(module: Any, name: str) -> str:
    value = getattr(module, name)
    head = f"### `{module.__name__}.{name}`"
    if not isinstance(value, type):
        signature = f"`{name}{inspect.signature(value)}`\n\n" if inspect.isfunction(value) else ""
        says = inspect.getdoc(value) if inspect.isfunction(value) else f"`{value}`"
        return f"{head}\n\n{signature}{says}"
    return _class_chapter(head, value)


def _class_chapter(head: str, value: type) -> str:
    name = value.__name__
    rows = [f"| `{one}` | {says} |" for one, says in _members(value)]
    table = "\n\n| has | which is |\n|---|---|\n" + "\n".join(rows) if rows else ""
    says = "" if (doc := inspect.getdoc(value) or "").startswith(f"{name}(") else doc
    return f"{head}\n\n{says}{table}"


def _members(value: type) -> Iterator[tuple[str, str]]:
    """Its fields, then its properties and methods, without those of its bases outside of Pulse."""
    named = _plain_types(value)
    for name, kind in named.items():
        if not name.startswith("_") and "ClassVar" not in str(kind):
            field = getattr(value, "model_fields", {}).get(name)
            words = f": {field.description}" if field and field.description else ""
            yield name, f"`{_type_name(kind)}`{words}".replace("|", "\\|")
    for name, member in vars(value).items():
        if name.startswith("_") or name in named:
            continue
        if isinstance(member, property):
            yield name, _first_line(member)
        elif inspect.isfunction(member):
            takes = ", ".join(one for one in inspect.signature(member).parameters if one != "self")
            yield f"{name}({takes})", _first_line(member)


def _plain_types(value: type) -> Mapping[str, Any]:
    """Its own annotations, without what pydantic adds to types."""
    own = inspect.get_annotations(value)
    try:
        plain = get_type_hints(value)
    except NameError:  # of a module that is imported for checks of types only
        return own
    return {name: plain[name] for name in own}


def _type_name(kind: Any) -> str:
    return (
        kind.__name__
        if isinstance(kind, type) and not get_args(kind)
        else re.sub(r"\b[a-z_]+\.", "", str(kind))
    )


def _first_line(member: object) -> str:
    return " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split()).replace("|", "\\|")


def event_data() -> str:
    """The data of each kind of event, as JSON has them."""
    return "\n\n".join(
        _data_chapter(kind) for kind in KINDS.values() if kind.__module__.startswith("pulse_core.")
    )


def _data_chapter(kind: type[Payload]) -> str:
    fields = kind.model_json_schema().get("properties", {})
    rows = [
        f"| `{name}` | {json_type(one)} | {one.get('description', '')} |".replace("  |", " |")
        for name, one in fields.items()
    ]
    table = "\n".join(["| field | type | |\n|---|---|---|", *rows]) if rows else "It has no data."
    return f"### `{kind.kind}`\n\n{table}"


def json_type(schema: Mapping[str, Any]) -> str:
    """The type that a field of an event's data is of in JSON."""
    if "anyOf" in schema:
        return " or ".join(map(json_type, schema["anyOf"]))
    if "$ref" in schema:
        return "object"
    inner = f" of {json_type(schema['items'])}" if schema.get("items") else ""
    return f"{schema.get('type', 'any')}{inner}"


PARTS: Mapping[str, Callable[[], str]] = {
    "actions": actions,
    "commands": commands,
    "effect-life": effect_life,
    "event-data": event_data,
    "event-kinds": event_kinds,
    "json-answers": answers,
    "names-of-rules": names_of_rules,
    "recorded-values": recorded_values,
    "settings": reference,
}


def main() -> None:
    """Rewrite the pages that are stale, and name them."""
    for page in pages():
        before = page.read_text()
        if (after := renewed(before)) != before:
            page.write_text(after)
            print(f"written: {page.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
