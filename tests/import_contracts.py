"""Contracts of imports in which capabilities have their place without being named one by one."""

from collections.abc import Iterable
from typing import Any

from importlinter.contracts.layers import LayersContract

from pulse_core.capabilities import CAPABILITIES, NEEDS

PLACEHOLDER = "CAPABILITIES"


class LayersWithCapabilities(LayersContract):
    """Layers in which `CAPABILITIES` stands for the folders of all capabilities, which don't know each other.

    Those that are built upon others have a layer of their own above these, where they don't share one with adapters.
    """

    type_name = "layers_with_capabilities"

    def __init__(self, name: str, session_options: dict[str, Any], contract_options: dict[str, Any]) -> None:
        layers: list[str] = []
        for layer in contract_options["layers"]:
            if layer == PLACEHOLDER:
                depths = {name: _depth(name) for name in CAPABILITIES}
                for depth in sorted(set(depths.values()), reverse=True):
                    layers.append(_together(name for name in CAPABILITIES if depths[name] == depth))
            else:
                layers.append(layer.replace(PLACEHOLDER, _together(CAPABILITIES)))
        super().__init__(name, session_options, {**contract_options, "layers": layers})


def _depth(capability: str) -> int:
    """How many stand below one, each built upon the next."""
    return max((1 + _depth(name) for name in NEEDS.get(capability, ())), default=0)


def _together(capabilities: Iterable[str]) -> str:
    """One layer of these; in parentheses: if it is there."""
    return " | ".join(f"({capability})" for capability in capabilities)
