"""A hands host's process: its end is that of the whole tree that came out of it."""

import asyncio
from collections.abc import Callable, Mapping

from pulse_adapters.workers import process_tree
from pulse_adapters.workers.host_process import OPTIONS, HostProcess
from pulse_adapters.workers.worker import Heard, module


class ActionProcess(HostProcess):
    """A running child, which keeps its number until its tree is ended, so that no other session has it.

    env holds the mark, `NAME=VALUE`, by which all that comes out of the child is known; uid: of the user that it takes
    on, if that is none that others use.
    """

    def __init__(
        self, env: Mapping[str, str], mark: str, uid: int | None, heard: Heard, gone: Callable[[], None]
    ) -> None:
        program = module("pulse_adapters.action_host.child", options=OPTIONS, env=env)
        super().__init__(program._replace(is_heard=False), heard, gone, keeps_number=True)
        self._tree, self._uid = mark, uid

    async def clear(self, is_orderly: bool) -> bool:
        """End what came out of it, once it is dead, and let go of everything; whether nothing is left.

        is_orderly: what has made a session of its own, as a service does, may go on.
        """
        _, undead = await asyncio.wait([self.dead], timeout=process_tree.PATIENCE)
        if undead:  # it sleeps uninterruptibly
            self.close()
            return False
        chosen = process_tree.in_session(self.pid) if is_orderly else process_tree.whole(self.pid, self._tree)
        if self._uid is not None and not is_orderly:
            chosen = process_tree.both(chosen, process_tree.strays(self._uid))
        try:
            return await asyncio.to_thread(process_tree.end, chosen)
        finally:
            self.reap()
            self.close()
