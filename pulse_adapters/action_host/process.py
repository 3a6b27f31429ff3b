"""A hands host's process: its end is that of the whole tree that came out of it."""

import asyncio
from collections.abc import Callable, Mapping

from pulse_adapters.action_host import tree
from pulse_adapters.child.process import Process, Said, argv

ARGV = argv("pulse_adapters.action_host.child")


class ActionProcess(Process):
    """A running child, which keeps its number until its tree is ended, so that no other session has it.

    env holds the mark, `NAME=VALUE`, by which all that comes out of the child is known; uid: of the user that it takes
    on, if that is none that others use.
    """

    def __init__(
        self, env: Mapping[str, str], mark: str, uid: int | None, said: Said, gone: Callable[[], None]
    ) -> None:
        super().__init__(ARGV, env, said, gone, finite=True, keeps_number=True)
        self._tree, self._uid = mark, uid

    async def clear(self, is_orderly: bool) -> bool:
        """End what came out of it, once it is dead, and let go of everything; whether nothing is left.

        is_orderly: what has made a session of its own, as a service does, may go on.
        """
        _, undead = await asyncio.wait([self.dead], timeout=tree.PATIENCE)
        if undead:  # it sleeps uninterruptibly
            self.close()
            return False
        chosen = tree.in_session(self.pid) if is_orderly else tree.whole(self.pid, self._tree)
        if self._uid is not None and not is_orderly:
            chosen = tree.both(chosen, tree.strays(self._uid))
        try:
            return await asyncio.to_thread(tree.end, chosen)
        finally:
            self.reap()
            self.close()
