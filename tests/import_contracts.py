"""Contracts of imports in which capabilities have their place without being named one by one."""

from typing import Any

from importlinter.contracts.layers import LayersContract

from pulse_core.capabilities import CAPABILITIES

PLACEHOLDER = "CAPABILITIES"


class LayersWithCapabilities(LayersContract):
    """Layers in which `CAPABILITIES` stands for the folders of all capabilities, which don't know each other."""

    type_name = "layers_with_capabilities"

    def __init__(self, name: str, session_options: dict[str, Any], contract_options: dict[str, Any]) -> None:
        names = " | ".join(f"({capability})" for capability in CAPABILITIES)  # in parentheses: if it is there
        layers = [layer.replace(PLACEHOLDER, names) for layer in contract_options["layers"]]
        super().__init__(name, session_options, {**contract_options, "layers": layers})
