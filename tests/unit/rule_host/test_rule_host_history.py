"""Of the history a host gets what its projections want, however many there are."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pulse_adapters.rule_host.hosts import ChildHosts
from pulse_adapters.rule_host.replies import HistoryReply, LoadReply
from pulse_core.model.event import Event
from pulse_core.model.kinds import DaemonHealthy, Resumed
from tests.events import event


class AskedKinds(frozenset[str]):
    """Kinds that count how often one of them is asked whether it has another."""

    asked = 0

    def __contains__(self, kind: object) -> bool:
        AskedKinds.asked += 1
        return super().__contains__(kind)


class RecordingChild:
    """Keeps what it is asked to fold."""

    def __init__(self) -> None:
        self.folded: list[Event] = []

    async def ask(self, message: Any, kind: type, seconds: float) -> HistoryReply:
        self.folded += message["events"]
        return HistoryReply()


async def test_no_event_of_the_history_is_looked_at_once_for_each_projection() -> None:
    events = [event(seq, Resumed() if seq % 2 else DaemonHealthy(), "") for seq in range(1, 101)]

    async def history(after: int) -> AsyncIterator[Sequence[Event]]:
        yield events

    projections = {str(number): ("1", AskedKinds({Resumed.kind})) for number in range(1_000)}
    child: Any = RecordingChild()
    await ChildHosts()._rebuild(child, LoadReply(projections=projections), 100, history, {})
    assert child.folded == events[::2]
    assert AskedKinds.asked <= len(events)
