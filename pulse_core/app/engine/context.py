"""What the workflow of the engine works with: made once where a command begins, and passed on from there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pulse_core.app.context import HomeContext
from pulse_core.model.vitals import Window
from pulse_core.ports.code_checks import CodeChecks
from pulse_core.ports.engine import ActionHosts, Revision, RuleHosts
from pulse_core.ports.engine_repository import EngineRepository

STAGING = "staging"
Windows = Callable[[], Mapping[str, Window]]
"""The windows of every sense, as they are now."""


class StandbyRuleHosts(RuleHosts, Protocol):
    """Hosts that begin at once: a process that has loaded all but the author's code stands by for the next one."""

    def warm(self) -> None:
        """Have a process stand by; without one, the next host begins later."""

    async def close(self) -> None:
        """End the one that stands by."""


@dataclass(frozen=True)
class WorkflowContext:
    """A home with an engine, and everything outside that the workflow asks.

    author: who asks, as `NAME <EMAIL>`. rule_hosts, action_hosts: start a revision's code, as the user that it must
    have; action_hosts is told where the windows of every sense are. standby_hosts: for who loads again and again.
    """

    home: HomeContext
    author: str
    repository: EngineRepository
    checks: Callable[[], CodeChecks]
    rule_hosts: RuleHosts
    action_hosts: Callable[[Windows], ActionHosts]
    standby_hosts: Callable[[], StandbyRuleHosts]


def revision_named(repository: EngineRepository, word: str) -> Revision:
    """The revision that a word means, laid out; `staging` as it lies there, with what is not committed."""
    if word == STAGING:
        repository.mend()
        return Revision(STAGING, str(repository.staging().path))
    return repository.ensure(repository.resolve(word))
