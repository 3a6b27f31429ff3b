"""Writes the generated parts of the documentation anew: `python -m docs.generate`, or `make docs`.

A part stands between `<!-- generated: NAME -->` and `<!-- /generated -->`; what is outside is left alone.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from pydantic import BaseModel

from docs.settings_reference import reference
from pulse_core.composition import ACTIONS, KINDS
from pulse_core.model.kinds import Effect
from pulse_core.model.names import SETTLING
from pulse_core.model.payload import Payload, Role, Wake
from pulse_core.projections.effects import MOVES, OPEN, Phase
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


PARTS: Mapping[str, Callable[[], str]] = {
    "actions": actions,
    "commands": commands,
    "effect-life": effect_life,
    "event-kinds": event_kinds,
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
