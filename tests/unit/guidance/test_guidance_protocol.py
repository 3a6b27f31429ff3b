"""The protocol: when an agent has to replan, which acknowledgements count, and what it is told."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from pulse_core.guidance import file_formats
from pulse_core.guidance.protocol import FILES, make_event_id, row_id, time_of
from pulse_core.guidance.service import GuidanceService
from tests.unit.guidance.guidance_world import ROOT, START, GuidanceWorld, sha


@pytest.fixture
def world() -> GuidanceWorld:
    return GuidanceWorld()


@pytest.fixture
def service(world: GuidanceWorld) -> GuidanceService:
    service = world.service()
    service.begin(ROOT)
    return service


def ask(service: GuidanceService, seen: str | None = None) -> Any:
    return service.should_interrupt(ROOT, seen)


def test_what_the_files_hold_at_first_is_no_change(world: GuidanceWorld) -> None:
    world.files = {"guidance.md": "mine"}
    service = world.service()
    service.begin(ROOT)
    assert world.files["guidance.md"] == "mine"
    assert set(world.files) == set(FILES)
    assert ask(service) == {
        "needs_replan": False,
        "latest_event_id": None,
        "has_new_events": False,
        "changed_files": [],
        "pending_replan_event_id": None,
        "pending_replan_files": [],
        "last_acknowledged_event_id": None,
        "last_acknowledged_plan_sha256": None,
        "reason": "There are no new events, and no change of guidance or constraints is pending.",
    }


def test_a_new_plan_does_not_clear_an_interrupt_and_an_acknowledgement_does(
    world: GuidanceWorld, service: GuidanceService
) -> None:
    world.files["guidance.md"] = "smaller"
    pending = ask(service)["pending_replan_event_id"]
    world.files["plan.md"] = "new plan"
    asked = ask(service)
    assert asked["needs_replan"]
    assert asked["pending_replan_event_id"] == pending
    assert asked["latest_event_id"] != pending
    done = service.acknowledge(ROOT, pending)
    assert done["accepted"]
    assert (done["acknowledged_event_id"], done["plan_sha256"]) == (pending, sha("new plan"))
    after = ask(service, asked["latest_event_id"])
    assert not after["needs_replan"]
    assert not after["has_new_events"]
    assert after["last_acknowledged_event_id"] == pending
    assert after["last_acknowledged_plan_sha256"] == sha("new plan")


def test_one_acknowledgement_clears_everything_before_and_a_change_after_it_is_a_new_interrupt(
    world: GuidanceWorld, service: GuidanceService
) -> None:
    world.files |= {"constraints.md": "c", "guidance.md": "g"}
    asked = ask(service)
    assert asked["pending_replan_files"] == [".pulse/guidance.md", ".pulse/constraints.md"]
    assert service.acknowledge(ROOT, asked["pending_replan_event_id"])["accepted"]
    assert not ask(service)["needs_replan"]
    world.files["constraints.md"] = "d"
    again = ask(service)
    assert again["needs_replan"]
    assert again["pending_replan_files"] == [".pulse/constraints.md"]


def test_refusals_come_in_their_order_and_with_their_words(
    world: GuidanceWorld, service: GuidanceService
) -> None:
    world.files["task.md"] = "t"
    task = ask(service)["latest_event_id"]
    for blank in ("", " \n"):
        assert "required" in service.acknowledge(ROOT, blank)["reason"]
    assert "was not found" in service.acknowledge(ROOT, "evt_missing")["reason"]
    assert "not a guidance or constraints event" in service.acknowledge(ROOT, task)["reason"]
    world.files["guidance.md"] = "g"
    first = ask(service)["pending_replan_event_id"]
    assert service.acknowledge(ROOT, first)["accepted"]
    refused = service.acknowledge(ROOT, first)
    assert "no pending" in refused["reason"]
    assert refused["acknowledged_event_id"] is None
    world.files["constraints.md"] = "c"
    second = ask(service)["pending_replan_event_id"]
    stale = service.acknowledge(ROOT, first)
    assert "stale" in stale["reason"]
    assert second in stale["reason"]
    assert stale["acknowledged_event_id"] == first
    assert stale["plan_sha256"] == ask(service)["last_acknowledged_plan_sha256"]
    assert not any(one["accepted"] for one in (refused, stale))
    assert "not a guidance or constraints event" in service.acknowledge(ROOT, task)["reason"]


def test_the_last_seen_event_affects_what_is_new_alone(
    world: GuidanceWorld, service: GuidanceService
) -> None:
    world.files["task.md"] = "t"
    first = ask(service)["latest_event_id"]
    world.files["plan.md"] = "p"
    new = ask(service, first)
    assert new["has_new_events"]
    assert new["changed_files"] == [".pulse/plan.md"]
    assert ask(service, "evt_unknown")["changed_files"] == [".pulse/task.md", ".pulse/plan.md"]
    for number in range(60):
        world.files["plan.md"] = f"p{number}"
        ask(service)
    assert ask(service, first)["changed_files"] == [".pulse/plan.md"]
    assert ask(service, None)["changed_files"] == [".pulse/task.md", ".pulse/plan.md"]
    none = ask(service, ask(service)["latest_event_id"])
    assert (none["has_new_events"], none["changed_files"]) == (False, [])


def test_only_net_changes_count_and_a_deletion_is_one(world: GuidanceWorld, service: GuidanceService) -> None:
    before = world.files["guidance.md"]
    world.files["guidance.md"] = "x"
    world.files["guidance.md"] = before
    assert ask(service)["latest_event_id"] is None
    del world.files["guidance.md"]
    assert ask(service)["needs_replan"]
    world.files["guidance.md"] = before
    ask(service)
    world.service().begin(ROOT)
    assert [(one.kind, one.sha256, one.size) for one in world.changes(ROOT)] == [
        ("deleted", None, None),
        ("created", sha(before), len(before)),
    ]
    assert "guidance.md" in world.files


def test_a_deleted_file_is_not_made_again_and_all_of_them_are(
    world: GuidanceWorld, service: GuidanceService
) -> None:
    del world.files["guidance.md"]
    world.service().begin(ROOT)
    assert "guidance.md" not in world.files
    world.files.clear()
    world.service().begin(ROOT)
    assert set(world.files) == set(FILES)
    assert ask(service)["needs_replan"]


def test_edits_made_while_nothing_ran_are_caught(world: GuidanceWorld, service: GuidanceService) -> None:
    world.files["guidance.md"] = "while nobody looked"
    later = world.service()
    later.begin(ROOT)
    assert [json.loads(line)["path"] for line in world.published] == [".pulse/guidance.md"]
    assert ask(later)["needs_replan"]


def test_a_line_of_events_has_six_keys(world: GuidanceWorld, service: GuidanceService) -> None:
    world.files["guidance.md"] = "ü"
    ask(service)
    (line,) = world.published
    said = json.loads(line)
    assert list(said) == ["id", "timestamp", "kind", "path", "sha256", "size"]
    assert line == json.dumps(said, separators=(",", ":")) + "\n"
    assert (said["kind"], said["sha256"], said["size"]) == ("modified", sha("ü"), 2)
    moment = datetime.fromisoformat(said["timestamp"])
    assert moment.tzinfo == UTC
    assert said["id"].startswith(f"evt_{moment:%Y%m%dT%H%M%S%f}Z_")


def test_the_context_has_all_its_sections(world: GuidanceWorld, service: GuidanceService) -> None:
    for number in range(25):
        world.files["task.md"] = f"task {number}"
        ask(service)
    text = service.context(ROOT)
    assert text.startswith("# PulseAgent Context\n")
    heads = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "Status",
        "Security Boundary",
        "Task",
        "Guidance",
        "Constraints",
        "Plan",
        "Recent Events",
    ]
    assert text.count("- evt_") == 20
    newest = text.splitlines()[-1]
    assert re.fullmatch(
        r"- evt_\S+ seen at \S+Z: modified task\.md|- evt_\S+ seen at \S+: modified \S+", newest
    ), newest
    assert "task 24" in text


def test_ids_order_by_time_and_name_the_row_of_the_log() -> None:
    id_ = make_event_id(START + 7, "0123abcd")
    assert time_of(id_) == START + 7
    row = UUID(row_id(ROOT, id_))
    assert (row.version, row.int >> 80) == (7, START // 1000)
    assert row_id("/other", id_) != str(row)
    assert [time_of(one) for one in ("", "evt_", "evt_20269999T999999999999Z_00000000")] == [None] * 3


EARLIER = {
    "schema_version": 2,
    "project_root": ROOT,
    "initialized_at": "2026-01-31T08:15:00.000250Z",
    "last_hashes": {name: sha("old") for name in FILES},
    "last_acknowledged_event_id": "evt_20260131T081600000000Z_aaaaaaaa",
    "last_acknowledged_plan_sha256": sha("plan"),
    "last_acknowledged_at": "2026-01-31T08:17:00Z",
}


def earlier_line(number: int, file: str) -> bytes:
    said = {
        "id": f"evt_20260131T081600{number:06d}Z_aaaaaaaa",
        "timestamp": f"2026-01-31T08:16:00.{number:06d}Z",
        "kind": "modified",
        "path": f".pulse/{file}",
        "sha256": sha("old"),
        "size": 3,
    }
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("version", [1, 2])
def test_what_another_program_has_recorded_is_taken_over_once(version: int, world: GuidanceWorld) -> None:
    state = {name: value for name, value in EARLIER.items() if version == 2 or "acknowledged" not in name}
    world.earlier_state = json.dumps({**state, "schema_version": version}).encode()
    lines = [earlier_line(number, "guidance.md" if number < 3 else "task.md") for number in range(1_203)]
    world.earlier_lines = [*lines[:7], b"{damaged\n", b"\n", *lines[7:]]
    world.files = dict.fromkeys(FILES, "old")
    world.files["plan.md"] = "changed meanwhile"
    for _ in range(2):
        service = world.service()
        assert service.begin(ROOT) == (1 if not _ else 0)
    assert [line.encode() for line in world.published[:-1]] == lines
    assert json.loads(world.published[-1])["path"] == ".pulse/plan.md"
    asked = ask(service)
    assert asked["pending_replan_files"] == [".pulse/guidance.md"]
    first, third = (json.loads(line)["id"] for line in (lines[0], lines[2]))
    assert asked["last_acknowledged_event_id"] == (first if version == 2 else None)
    assert "stale" in service.acknowledge(ROOT, first)["reason"]
    assert service.acknowledge(ROOT, third)["accepted"]


class Killed(Exception):
    """The process has ended here."""


def importing(steps: int, act: Callable[[GuidanceWorld], None]) -> GuidanceWorld:
    """A world in which something happens once, after so many steps of an import."""
    lines = [earlier_line(number, "guidance.md") for number in range(10)]
    world = GuidanceWorld(earlier_lines=lines, files=dict.fromkeys(FILES, "old"))
    left = iter(range(steps))

    def step() -> None:
        if next(left, None) is None:
            world.between = lambda: None
            act(world)

    world.between = step
    return world


def import_too(world: GuidanceWorld) -> None:
    world.service().begin(ROOT)


def die(world: GuidanceWorld) -> None:
    raise Killed


@pytest.mark.parametrize("steps", range(19))
def test_an_import_that_is_killed_anywhere_goes_on_where_it_was(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_formats, "MOST_IMPORTED", 3)
    world = importing(steps, die)
    with suppress(Killed):
        world.service().begin(ROOT)
    world.between = lambda: None
    world.service().begin(ROOT)
    assert [line.encode() for line in world.published] == world.earlier_lines


@pytest.mark.parametrize("steps", range(19))
def test_two_that_import_at_the_same_time_record_each_change_once(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_formats, "MOST_IMPORTED", 3)
    world = importing(steps, import_too)
    world.service().begin(ROOT)
    assert [line.encode() for line in world.published] == world.earlier_lines


def test_many_earlier_changes_are_recorded_in_one_batch_of_few_events(world: GuidanceWorld) -> None:
    world.earlier_lines = [earlier_line(number, "task.md") for number in range(5_000)]
    world.files = dict.fromkeys(FILES, "old")
    world.service().begin(ROOT)
    assert world.batches == [4]
    assert world.project_.count == 5_000


def test_an_earlier_acknowledgement_of_the_newest_change_leaves_nothing_pending(world: GuidanceWorld) -> None:
    world.earlier_lines = [
        earlier_line(0, "guidance.md"),
        *(earlier_line(one, "task.md") for one in range(1, 40)),
    ]
    world.earlier_state = json.dumps(EARLIER).encode()
    world.files = dict.fromkeys(FILES, "old")
    service = world.service()
    service.begin(ROOT)
    assert not ask(service)["needs_replan"]
    assert world.project_.acknowledged is not None
    assert world.project_.acknowledged.plan_sha256 == sha("plan")


@pytest.mark.parametrize(
    "state",
    [None, b"", b"{", b"[]", b"\xff", b'{"last_hashes": 5}', b'{"last_acknowledged_event_id": "a b"}'],
)
def test_an_earlier_state_of_no_use_hinders_nothing(state: bytes | None, world: GuidanceWorld) -> None:
    world.earlier_state = state
    world.earlier_lines = [b"null\n", b"[1]\n", b'{"id":1}\n', earlier_line(0, "guidance.md")]
    service = world.service()
    assert service.begin(ROOT) == 3
    assert ask(service)["pending_replan_files"] == [".pulse/guidance.md"]


@pytest.mark.parametrize("id_", ["evt_99991231T235959999999Z_00000000", "old-1"])
def test_a_change_is_recorded_after_one_that_another_program_says_to_be_of_the_last_moment_of_time(
    id_: str,
) -> None:
    """Else each look would fail, and the daemon's looks at all other projects with it."""
    last = {
        "id": id_,
        "timestamp": "9999-12-31T23:59:59.999999Z",
        "kind": "created",
        "path": ".pulse/task.md",
    }
    world = GuidanceWorld(earlier_lines=[json.dumps(last).encode()], files={"task.md": "x"})
    service = world.service()
    service.begin(ROOT)
    world.files["guidance.md"] = "new"
    assert service.look(ROOT).recent[-1].file == "guidance.md"
    assert service.look(ROOT).recent[-1].at < 2 * START
