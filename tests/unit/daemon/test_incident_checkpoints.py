"""The checkpoint of the incidents: it holds what the whole log says, resumes, and forgets what was redacted."""

import asyncio
from collections.abc import Awaitable, Callable

from pulse_adapters.memory.clock import VirtualClock, virtual_loop
from pulse_adapters.memory.log import MemoryLog
from pulse_adapters.memory.stores import MemoryCheckpoints
from pulse_core.daemon.incident_checkpoints import STEP, IncidentCheckpoints
from pulse_core.model.event import Draft
from pulse_core.model.kinds import EventRedacted, ProcessDied, ProcessUp
from pulse_core.projections.incidents import NAME, Incidents, after, dump, load

DIED = Draft(ProcessDied(pid=7, healthy=True, evidence="it printed a password"), subject="web")
UP = Draft(ProcessUp(pid=8, started=1, evidence="alive"), subject="web")


class Scene:
    """A log, checkpoints, and who keeps them."""

    def __init__(self) -> None:
        self.log = MemoryLog(VirtualClock(asyncio.get_running_loop().time))
        self.checkpoints = MemoryCheckpoints()
        self.failed = list[tuple[str, str]]()

    def keeper(self) -> IncidentCheckpoints:
        def failed(whose: str, words: str) -> None:
            self.failed.append((whose, words))

        return IncidentCheckpoints(self.log, self.checkpoints, lambda: 60.0, failed)

    async def run(self, seconds: float) -> None:
        """A daemon that runs for a while."""
        keeper = self.keeper()
        await keeper.load()
        running = asyncio.create_task(keeper.run())
        await asyncio.sleep(seconds)
        running.cancel()
        await asyncio.wait([running])
        await keeper.save()

    @property
    def kept(self) -> Incidents:
        return load(self.checkpoints.kept[NAME].state)

    @property
    def whole(self) -> Incidents:
        """What the whole log says."""
        return load(dump(after(Incidents(), self.log.events)))


def played(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def told() -> None:
        scene = Scene()
        await story(scene)
        assert scene.failed == []

    with asyncio.Runner(loop_factory=virtual_loop) as runner:
        runner.run(told())


def test_the_checkpoint_holds_what_the_whole_log_says_and_goes_on_after_a_restart() -> None:
    async def story(scene: Scene) -> None:
        await scene.log.append(*[DIED, UP] * STEP, DIED)
        await scene.run(30)
        assert scene.kept == scene.whole
        assert scene.checkpoints.kept[NAME].head == scene.log.head
        await scene.log.append(UP)
        await scene.run(30)
        assert scene.kept == scene.whole

    played(story)


def test_what_was_redacted_does_not_live_on_in_the_checkpoint() -> None:
    async def story(scene: Scene) -> None:
        (died,) = await scene.log.append(DIED)
        await scene.run(30)
        assert "password" in dump(scene.kept)
        await scene.log.append(Draft(EventRedacted(why="a password"), subject=died.id))
        await scene.run(30)
        assert "password" not in dump(scene.kept)
        assert [one.subject for one in scene.kept.all.values()] == ["web"]

    played(story)


def test_a_checkpoint_that_is_of_another_log_or_cannot_be_read_is_none() -> None:
    async def story(scene: Scene) -> None:
        await scene.log.append(DIED)
        await scene.run(30)
        kept = scene.checkpoints.kept[NAME]
        for odd in (
            kept._replace(version=0),
            kept._replace(state="[]"),
            kept._replace(head=kept.head._replace(chain=b"")),
        ):
            scene.checkpoints.kept[NAME] = odd
            await scene.log.append(UP)
            await scene.run(30)
            assert scene.kept == scene.whole

    played(story)
