"""A rule host's process."""

from collections.abc import Callable, Mapping

from pulse_adapters.workers.host_process import OPTIONS, HostProcess
from pulse_adapters.workers.messages import Limits
from pulse_adapters.workers.worker import Heard, module_program

LIMITS = Limits(finite=False)
"""A rule may wish for what is no number: then it is told of that, and its host goes on."""


class RuleProcess(HostProcess):
    """A running rule host."""

    def __init__(self, env: Mapping[str, str], heard: Heard, gone: Callable[[], None]) -> None:
        program = module_program("pulse_adapters.rule_host.child", options=OPTIONS, env=env)
        super().__init__(program._replace(limits=LIMITS), heard, gone)

    def unit(self) -> int | None:
        """The index of the unit under way, if any; untrusted, since the child can write anything there."""
        mark = self.mark()
        return mark - 1 if mark else None
