"""The onion as a tree: each rule, outermost first, what it did and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from pulse_core.model.text import one_line
from upulse_cli.time_args import local

COLOURS = {"added": "green", "dropped": "yellow", "bypassed": "magenta", "error": "red", "passed": "dim"}


def tree(told: Mapping[str, Any]) -> Tree:
    """One branch a rule, its notes below; then what would be recorded, and what is not known."""
    head = f"at {local(told['at'], named=True)}, tick {told['tick']}, after row {told['seq']}"
    drawn = Tree(Text(head, style="bold"), guide_style="dim")
    width = max((len(layer["rule"]) for layer in told["rules"]), default=0) + 2
    for layer in told["rules"]:
        drawn.add(_layer(layer, width))
    drawn.add(_effects(told))
    if told["withheld"]:
        drawn.add(_withheld(told["withheld"]))
    for words in told["caveats"]:
        drawn.add(Text(one_line(words), style="yellow"))
    return drawn


def _layer(layer: Mapping[str, Any], width: int) -> Tree:
    outcome = layer["outcome"]
    branch = Tree(
        Text.assemble((f"{layer['rule']:<{width}}", ""), (f"{outcome:<9}", COLOURS.get(outcome, "")),
        (f"{layer['took_us'] / 1000:>7.2f} ms", "dim"))
    )  # fmt: skip
    for note in layer["notes"]:
        branch.add(Text(one_line(note)))
    return branch


def _effects(told: Mapping[str, Any]) -> Tree:
    branch = Tree(Text(f"effects: {len(told['effects'])}; next tick within {told['next_tick_ms']} ms"))
    for effect in told["effects"]:
        state = "  (open already)" if effect["open"] else ""
        branch.add(Text(one_line(f"{effect['key']}{state}  by {effect['rule']}: {effect['reason']}")))
    return branch


def _withheld(effects: Sequence[Mapping[str, Any]]) -> Tree:
    branch = Tree(Text(f"wished for in vain: {len(effects)}"))
    for effect in effects:
        branch.add(Text(one_line(f"{effect['key']}  by {effect['rule']}: {effect['why']}"), style="yellow"))
    return branch
