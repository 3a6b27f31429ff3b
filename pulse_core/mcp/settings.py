"""What clients over MCP may do without a person."""

from pydantic import Field

from pulse_core.settings.groups import Group
from pulse_core.settings.settings_group import SettingsGroup


class McpSettings(Group):
    """`[mcp]`: agents that ask over MCP."""

    promote: bool = Field(
        False,
        description="whether a rule that an agent proposes comes into force once it has passed all gates",
    )


SETTINGS: SettingsGroup[McpSettings] = SettingsGroup("mcp", McpSettings, McpSettings())
