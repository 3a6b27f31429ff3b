"""Incidents as a tree: one branch an episode, newest last."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from pulse_core.model.text import count, one_line
from upulse_cli.incidents import lines
from upulse_cli.moments import local


def tree(told: Sequence[Mapping[str, Any]], since: str) -> Tree:
    """Every incident with what was done about it."""
    drawn = Tree(Text(f"{count(len(told), 'incident')} since {since}", style="bold"), guide_style="dim")
    for incident in told:
        head, *more = lines(incident)
        style = "" if incident["ended"] else "yellow"
        branch = drawn.add(Text.assemble((f"{local(incident['began'])}  ", "dim"), (one_line(head), style)))
        for line in more:
            branch.add(Text(one_line(line)))
    return drawn
