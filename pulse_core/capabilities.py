"""The capabilities of this release: the one list of them, in the order of the onion, outermost first.

A name stands for `pulse_core/NAME/` and, where they are there, `pulse_adapters/NAME/` and `upulse_cli/capabilities/NAME/`.
Whoever deletes a line here and these folders has removed the capability. Nothing is imported here, so that the command
line can look for commands before anything of the core is loaded; `pulse_core.composition` loads them all.
"""

CAPABILITIES: tuple[str, ...] = (
    "silences",
    "llm",
)
