"""An action host's process: when it ends, its whole process tree is ended."""

import asyncio
from collections.abc import Callable, Mapping

from pulse_adapters.workers import process_tree
from pulse_adapters.workers.host_process import OPTIONS, HostProcess
from pulse_adapters.workers.worker import Heard, module_program


class ActionProcess(HostProcess):
    """A running child. It is reaped only after its tree is ended, so that no other session gets its pid meanwhile.

    env holds the mark, `NAME=VALUE`, by which all descendants of the child are found; uid: of the user that it takes
    on, if nobody else uses that user.
    """

    def __init__(
        self, env: Mapping[str, str], mark: str, uid: int | None, heard: Heard, gone: Callable[[], None]
    ) -> None:
        program = module_program("pulse_adapters.action_host.child", options=OPTIONS, env=env)
        super().__init__(program._replace(is_heard=False), heard, gone, keeps_number=True)
        self._tree, self._uid = mark, uid

    async def clear(self, is_orderly: bool) -> bool:
        """Kill its descendants once it is dead, and release everything; whether nothing is left.

        is_orderly: descendants with a session of their own, as services have, may go on.
        """
        _, undead = await asyncio.wait([self.dead], timeout=process_tree.PATIENCE)
        if undead:  # it sleeps uninterruptibly
            self.close()
            return False
        chosen = (
            process_tree.in_session(self.pid)
            if is_orderly
            else process_tree.session_or_marked(self.pid, self._tree)
        )
        if self._uid is not None and not is_orderly:
            chosen = process_tree.either_of(chosen, process_tree.orphans_of_user(self._uid))
        try:
            return await asyncio.to_thread(process_tree.kill_processes, chosen)
        finally:
            self.reap()
            self.close()
