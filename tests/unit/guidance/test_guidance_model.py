"""Edits, polls, acknowledgements and restarts of several processes in any order, also in the middle of each other."""

from dataclasses import replace
from random import Random

import pytest

from pulse_core.guidance.projection import GUIDANCE, RECENT, Guidance
from pulse_core.guidance.protocol import FILES, INVALIDATING, TEMPLATES, time_of
from pulse_core.guidance.service import GuidanceService
from pulse_core.model.stored_data import REDACTED
from tests.long_form import sample
from tests.unit.guidance.guidance_world import ROOT, GuidanceWorld, sha

PROCESSES = 3
DEPTH = 2
"""Operations that may be in the middle of each other."""


class Crashed(Exception):
    """The process was killed."""


class Scene:
    """Processes over one world. A step of one may be interrupted by others, or be its last."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = GuidanceWorld(self.random)
        self.services = [self.world.service() for _ in range(PROCESSES)]
        self.services[0].begin(ROOT)
        self.accepted: list[str] = []
        self.depth = 0
        self.world.between = self.between

    def between(self) -> None:
        """What others do in the middle of an operation."""
        if self.depth and self.random.random() < 0.02:
            raise Crashed
        if self.depth < DEPTH and self.random.random() < 0.15:
            self.operation()

    def operation(self) -> None:
        """Something that somebody does."""
        self.depth += 1
        number = self.random.randrange(PROCESSES)
        chosen = self.random.choice(
            (self.edit, self.edit, self.poll, self.poll, self.acknowledge, self.restart)
        )
        try:
            chosen(number)
        except Crashed:
            self.services[number] = self.world.service()
        finally:
            self.depth -= 1

    def edit(self, _: int) -> None:
        name = self.random.choice(FILES)
        if self.random.random() < 0.15:
            self.world.files.pop(name, None)
        else:
            self.world.files[name] = self.random.choice((TEMPLATES[name], "a", "b", "c"))

    def poll(self, number: int) -> None:
        self.services[number].should_interrupt(ROOT, self.some_id())

    def acknowledge(self, number: int) -> None:
        pending = self.world.project_.pending_id
        id_ = pending if pending and self.random.random() < 0.8 else self.some_id() or ""
        answer = self.services[number].acknowledge(ROOT, id_)
        if answer["accepted"]:
            assert answer["acknowledged_event_id"] == id_
            self.accepted.append(id_)

    def restart(self, number: int) -> None:
        self.services[number] = self.world.service()
        self.services[number].begin(ROOT)

    def some_id(self) -> str | None:
        known = [change.id for change in self.world.changes(ROOT)]
        return self.random.choice([None, "evt_no", *known[-3:]])


@pytest.mark.parametrize("seed", range(sample(20, 400)))
def test_nothing_is_recorded_twice_and_no_acknowledgement_is_lost(seed: int) -> None:
    scene = Scene(seed)
    world = scene.world
    for _ in range(40):
        scene.operation()
    world.between = lambda: None
    service = world.service()
    service.look(ROOT)
    changes, project = list(world.changes(ROOT)), world.project_
    assert [change.number for change in changes] == list(range(1, len(changes) + 1))
    assert len({change.id for change in changes}) == len(changes)
    times = [time_of(change.id) or 0 for change in changes]
    assert times == sorted(set(times))
    held: dict[str, str | None] = {name: sha(text) for name, text in TEMPLATES.items()}
    for change in changes:
        before = held[change.file]
        assert change.sha256 != before
        assert change.kind == (
            "deleted" if change.sha256 is None else "created" if before is None else "modified"
        )
        held[change.file] = change.sha256
    assert held == {name: sha(world.files[name]) if name in world.files else None for name in FILES}
    assert project.hashes == held
    assert list(project.recent) == changes[-RECENT:]
    assert world.published == [change.line() for change in changes]
    check_acknowledgements(scene, service)


def check_acknowledgements(scene: Scene, service: GuidanceService) -> None:
    """What was accepted is in the log in that order, once each; what waits is what came after the last of them."""
    world = scene.world
    said = [event for event in world.events if event.kind == "guidance-acknowledged"]
    recorded: list[str] = [event.payload.event_id for event in said]  # type: ignore[union-attr]
    assert len(set(recorded)) == len(recorded)
    assert set(scene.accepted) <= set(recorded)  # one that crashed after recording has told nobody
    assert len(set(scene.accepted)) == len(scene.accepted)
    number_of: dict[str, int] = {change.id: change.number for change in world.changes(ROOT)}
    last = number_of[recorded[-1]] if recorded else 0
    waiting = [one for one in world.changes(ROOT) if one.file in INVALIDATING and one.number > last]
    asked = service.should_interrupt(ROOT, None)
    assert asked["pending_replan_event_id"] == (waiting[-1].id if waiting else None)
    assert asked["pending_replan_files"] == list(dict.fromkeys(one.path for one in waiting))
    assert asked["last_acknowledged_event_id"] == (recorded[-1] if recorded else None)


def test_what_follows_a_change_that_was_redacted_counts_and_is_published() -> None:
    world = GuidanceWorld()
    service = world.service()
    service.begin(ROOT)
    for text in ("a", "b", "c"):
        world.files["guidance.md"] = text
        service.look(ROOT)
    kept, (first, second, third) = world.project_, world.project_.recent
    place = next(n for n, event in enumerate(world.events) if second.id in event.data)
    world.events[place] = world.events[place]._replace(data=REDACTED)
    world.state_ = GUIDANCE.after(Guidance(), world.events)
    assert world.project_ == replace(kept, recent=(first, third))
    assert service.look(ROOT) == world.project_
    assert service.acknowledge(ROOT, third.id)["accepted"]
