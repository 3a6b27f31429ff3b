"""What authors of rules begin in staging, and what plugins bring."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pulse_adapters.git.repository import Repository
from pulse_adapters.git.scaffold import scaffold
from pulse_adapters.rule_host.plugin_contents import installed_plugins


def begin_in_staging(home: Path, what: str, name: str) -> Sequence[Path]:
    """Write a rule, projection, watcher or executor with its test into staging; the files."""
    repository = Repository(home)
    repository.mend()
    return list(scaffold(repository.staging().path, what, name))


def plugin_contents() -> Sequence[Mapping[str, Any]]:
    """What each installed plugin brings, as JSON values."""
    return installed_plugins()
