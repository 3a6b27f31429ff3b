"""How many tasks there may be, how often one is tried, and what whoever does them can do."""

from typing import Any, Self

from pydantic import Field, model_validator

from pulse_core.settings.groups import Duration, Group
from pulse_core.settings.processes import Name
from pulse_core.settings.settings_group import SettingsGroup


class TaskSettings(Group):
    """`[tasks]`: work that is handed to agents and people."""

    most: int = Field(2_000, ge=1, le=5_000, description="open tasks at once, all of which rules look at")
    attempts: int = Field(3, ge=1, le=100, description="claims without a result before a person decides")
    for_conditions: Duration = Field(
        0, ge=0, description="how long a condition must stand for a task to be made of it; 0: none is"
    )
    project: str = Field(
        "", max_length=64, description="project of the tasks that are made of conditions", examples=["ops"]
    )

    @model_validator(mode="after")
    def _conditions_need_a_project(self) -> Self:
        if self.for_conditions and not self.project:
            raise ValueError("for_conditions needs a project")
        return self


SETTINGS: SettingsGroup[TaskSettings] = SettingsGroup("tasks", TaskSettings, TaskSettings())


class TaskWorker(Group):
    """Who does tasks, as far as it matters for which ones; an `[[agent]]` is more than that."""

    name: Name = Field(description="its name everywhere", examples=["ada"])
    labels: tuple[str, ...] = Field(
        (), description="labels that its tasks may have, what it can do; empty: any", examples=[["python"]]
    )
    columns: tuple[str, ...] = Field(("Ready",), min_length=1, description="columns whose new tasks it does")
    projects: tuple[str, ...] = Field(
        (), description="projects whose tasks it does; empty: all of which it is a member", examples=[["app"]]
    )


WORKERS: SettingsGroup[tuple[TaskWorker, ...]] = SettingsGroup("agent", Any, ())
"""The agents of the settings; none without the capability that adds them, which is built upon this one."""
