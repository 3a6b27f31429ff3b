"""Notices as the whole daemon sends them, in virtual time: said at once, sent together, lost never."""

import asyncio
import json
import logging
import re
from collections import Counter
from itertools import count
from random import Random
from typing import Any

import pytest

from pulse_adapters.memory.network import MemoryTransport
from pulse_adapters.memory.stores import MemoryCheckpoints
from pulse_adapters.notify.deliver import NOT_UNDERSTOOD
from pulse_adapters.notify.executor import Notify
from pulse_core.composition import SURVIVAL
from pulse_core.execute.notice_batching import failure_reason
from pulse_core.model.errors import LogUnavailable
from pulse_core.model.event import Draft, Event
from pulse_core.model.kinds import (
    ConditionCleared,
    ConditionRaised,
    DaemonStopped,
    Effect,
    EffectCancelRequested,
    Paused,
    Resumed,
)
from pulse_core.model.payload import Payload
from pulse_core.model.verdict import Verdict
from pulse_core.ports.transport import UnusableAddress
from pulse_core.projections.state import Snapshot, State
from pulse_core.rules import Inner, Rule
from pulse_core.settings.settings import Settings
from pulse_core.silences.events import SilenceAdded
from tests.long_form import sample
from tests.simulation.world import World, simulate

ONE, TWO = "json://one", "json://two"
DAY, HOUR = 86_400, 3_600
SENT = {"notify": {"urls": [ONE]}, "network": {"dns": ["one.example"]}}
LAZY = {
    "daemon": {"executor_scan_interval_ms": 60_000, "tick_ms": 600_000},
    "watch": {"process_interval": "10m", "system_interval": "10m"},
}
CRASHING = {**SENT, "process": [{"name": "gateway", "start": ["gateway"]}]}


class Lines(logging.Handler):
    """What the daemon's log says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.levels: list[int] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.levels.append(record.levelno)


class Post:
    """The real executor on a world, and a courier whose letters arrive in a list."""

    def __init__(self, world: World, environment: dict[str, str] | None = None) -> None:
        self.world, self.transport, self.lines = world, MemoryTransport(), Lines()
        self.logger = logging.Logger("notices of a test")
        self.logger.addHandler(self.lines)
        self.errors: list[str] = []
        self.rules: tuple[Rule, ...] = ()
        self.environment = environment or {}

    async def start(self) -> None:
        """A daemon with an executor that has nothing in memory."""
        self.notify = Notify(
            lambda: self.world.settings,
            self.transport,
            self.world.clock,
            lambda _whose, message: self.errors.append(message),
            self.environment,
            self.logger,
            self.view,
        )
        self.world.executors["notify"] = self.notify
        if self.world.log.events:  # after a crash of which nobody is told, since notices are counted
            await self.world.log.append(Draft(DaemonStopped(pid=1, reason="a crash")))
        daemon = await self.world.start()
        daemon.journal.listen_once(self.notify.log_notices)
        daemon.ticker.folding.survival = self.rules or SURVIVAL

    def view(self) -> State:
        assert self.world.daemon is not None
        return self.world.daemon.parts.view()

    async def wish(self, name: str, **params: Any) -> Event:
        params = {"title": name, "text": f"about {name}", **params}
        return await self.world.ask(Effect(action="notify", key=f"notify:{name}", params=params))

    async def network(self, state: str) -> None:
        told: Payload = (
            ConditionRaised(evidence="x", state=state) if state else ConditionCleared(evidence="x")
        )
        assert self.world.daemon is not None
        await self.world.daemon.journal.append(Draft(told, "network"))

    def life(self, wish: Event) -> list[str]:
        return [event.kind.removeprefix("effect-") for event in self.world.events(subject=wish.id)]

    @property
    def titles(self) -> list[str]:
        return [letter.title.split(" (")[0].split(" from ")[0] for letter in self.transport.arrived]


def tell(story: Any, settings: dict[str, Any] = SENT, **more: Any) -> World:
    async def telling(world: World) -> None:
        post = Post(world)
        await post.start()
        await story(post)

    return simulate(telling, settings, **more)


PAGER, CHAT = "json://pager", "json://chat"
ROUTED = {
    "notify": {"urls": [], "group": "0s"},
    "notify_route": [
        {"urls": [PAGER], "severity": "critical"},
        {"urls": [CHAT, PAGER], "severity": "info", "match": "disk:*"},
    ],
}


def addresses(post: Post) -> list[tuple[str, str]]:
    return [(one.title.split(" (")[0], one.url) for one in post.transport.arrived]


def test_a_notice_goes_where_its_severity_and_topic_lead_and_to_each_address_once() -> None:
    async def story(post: Post) -> None:
        for name, severity in (("disk:/", "critical"), ("disk:/srv", "info"), ("flapping:a", "critical")):
            await post.wish(name, severity=severity)
            await asyncio.sleep(1)
        assert addresses(post) == [
            ("disk:/", PAGER), ("disk:/", CHAT), ("disk:/srv", PAGER), ("disk:/srv", CHAT), ("flapping:a", PAGER),
        ]  # fmt: skip

    tell(story, {**ROUTED, "daemon": {"executor_scan_interval_ms": 1_000}})


def test_a_notice_that_no_route_takes_is_only_logged_and_reaches_nobody() -> None:
    async def story(post: Post) -> None:
        wish = await post.wish("llm:x", severity="error")
        await asyncio.sleep(1)
        (acked,) = post.world.events("effect-acked", subject=wish.id)
        assert json.loads(acked.data)["result"] == {"only": "logged: no route takes it"}
        assert post.world.daemon is not None
        assert post.world.daemon.parts.view().notices.reached is None
        assert post.lines.levels[0] == logging.ERROR

    tell(story, ROUTED)


def test_what_is_sent_together_goes_to_each_address_that_one_of_them_has_with_its_own_alone() -> None:
    async def story(post: Post) -> None:
        await asyncio.gather(
            post.wish("a", severity="critical"),
            post.wish("disk:b", severity="info"),
            post.wish("c", severity="info"),
        )
        await asyncio.sleep(5)
        told = {one.url: one.title + one.body for one in post.transport.arrived}
        assert told.keys() == {PAGER, CHAT}
        assert "about c" not in "".join(told.values())
        assert "about a" not in told[CHAT]
        assert "about disk:b" in told[CHAT]
        assert "about disk:b" in told[PAGER]

    tell(story, {**ROUTED, "notify": {"group": "1s"}})


def test_without_an_address_a_notice_is_a_line_and_done() -> None:
    async def story(post: Post) -> None:
        wish = await post.wish("a")
        await asyncio.sleep(0.1)
        assert post.life(wish) == ["executing", "acked"]
        assert post.lines.said == ["a: about a"]
        assert post.transport.asked == 0

    tell(story, {})


def test_a_notice_is_said_at_once_and_sent_with_those_that_follow() -> None:
    async def story(post: Post) -> None:
        first = await post.wish("a")
        assert post.lines.said == ["a: about a"]
        await asyncio.sleep(1)
        second = await post.wish("b")
        await asyncio.sleep(0.9)
        assert (post.life(first), post.transport.asked) == ([], 0)
        await asyncio.sleep(1)
        assert post.titles == ["2 notices"]
        assert [post.life(wish) for wish in (first, second)] == [["executing", "acked"]] * 2
        assert post.lines.said == ["a: about a", "b: about b"]

    tell(story)


def test_one_by_itself_is_told_in_full_and_good_news_as_such() -> None:
    async def story(post: Post) -> None:
        await post.wish("a", title="resolved: a", over=True)
        await asyncio.sleep(5)
        (letter,) = post.transport.arrived
        assert (letter.url, letter.body, letter.tone) == (ONE, "about a", "success")
        assert letter.title.startswith("resolved: a (")

    tell(story)


def test_waiting_notices_take_no_slot_from_what_keeps_the_machine_alive() -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 50.0
        for number in range(40):
            await post.wish(f"n{number}")
        await asyncio.sleep(10)
        assert len(post.world.events("effect-executing")) >= 30  # a message is under way, another one waits
        note = await post.world.ask(Effect(action="note", key="k"))
        await asyncio.sleep(0.1)
        assert post.life(note) == ["executing", "acked"]

    tell(story, {**SENT, "daemon": {"concurrency": 1}})


def test_more_than_a_message_holds_goes_out_in_several_one_after_the_other() -> None:
    async def story(post: Post) -> None:
        for number in range(70):
            await post.wish(f"n{number}")
        await asyncio.sleep(10)
        assert post.titles == ["30 notices", "30 notices", "10 notices"]

    tell(story)


def test_no_more_messages_an_hour_than_allowed_and_nothing_is_dropped() -> None:
    async def story(post: Post) -> None:
        for number in range(40):
            await post.wish(f"n{number}")
            await asyncio.sleep(60)
        assert post.titles == [f"n{number}" for number in range(5)]
        await asyncio.sleep(25 * 60)
        assert post.titles[5:] == ["30 notices", "5 notices"]
        assert "of them waited to be sent, and may be over." in post.transport.arrived[5].body
        assert len(post.lines.said) == 40

    tell(story, {**SENT, "notify": {"urls": [ONE], "per_hour": 5}})


def test_a_rule_that_calls_all_that_it_tells_critical_holds_back_no_notice_of_survival() -> None:
    async def story(post: Post) -> None:
        async def told(name: str, severity: str, tick: int, survival: bool = False) -> None:
            params = {"title": name, "severity": severity}
            wish = Effect(
                action="notify", key=f"notify:{name}", params=params, tick=tick, rule="one", survival=survival
            )
            assert (daemon := post.world.daemon) is not None
            assert await daemon.executor.submit([wish], daemon.gate) == [wish.key]

        for number in range(55):
            await told(f"r{number}", "critical", number)
            await asyncio.sleep(60)
        assert post.titles == [f"r{number}" for number in range(10)]
        await told("down", "error", 60, survival=True)
        await asyncio.sleep(3)
        assert post.titles[10:] == ["down"]

    tell(story, {**SENT, "notify": {"urls": [ONE], "per_hour": 5}})


def test_the_limit_survives_a_restart() -> None:
    async def story(post: Post) -> None:
        for number in range(3):
            await post.wish(f"n{number}")
            await asyncio.sleep(10)
        await post.world.crash()
        post.world.checkpoints = MemoryCheckpoints()
        await post.start()
        await post.wish("late")
        await asyncio.sleep(HOUR - 60)
        assert post.titles == ["n0", "n1"]
        await asyncio.sleep(60)
        assert post.titles == ["n0", "n1", "2 notices"]

    tell(story, {**SENT, "notify": {"urls": [ONE], "per_hour": 2}})


# The network is away


@pytest.mark.parametrize("restart", [False, True])
def test_notices_of_a_days_outage_arrive_afterwards_together_with_their_times(restart: bool) -> None:
    async def story(post: Post) -> None:
        await post.network("down")
        wishes = []
        for hour in range(24):
            wishes.append(await post.wish(f"n{hour}"))
            await asyncio.sleep(HOUR)
            if restart and hour % 5 == 0:
                await post.world.crash()
                await post.start()
        assert post.transport.asked == 0
        assert [post.life(wish) for wish in wishes] == [[]] * 24
        assert {f"n{hour}: about n{hour}" for hour in range(24)} <= set(post.lines.said)
        await post.network("")
        await asyncio.sleep(3)
        assert post.titles == ["24 notices", "resolved: the network"]
        body = post.transport.arrived[0].body
        assert body.startswith("24 of them waited to be sent, and may be over.")
        assert "2027-01-15 08:00:00 UTC  n0: about n0" in body
        assert [body.index(f"  n{hour}: about") for hour in range(24)] == sorted(
            body.index(f"  n{hour}: about") for hour in range(24)
        )
        assert [post.life(wish) for wish in wishes] == [["executing", "acked"]] * 24

    tell(story, {**SENT, **LAZY})


def test_a_notice_of_an_earlier_daemon_says_of_when_it_is() -> None:
    async def story(post: Post) -> None:
        await post.network("down")
        await post.wish("a")
        await asyncio.sleep(1)
        await post.world.crash()
        await post.start()
        await post.network("")
        await asyncio.sleep(3)
        body = post.transport.arrived[0].body
        assert body.startswith(
            "1 of them waited to be sent, and may be over.\n\n2027-01-15 08:00:00 UTC  a: about a"
        )

    tell(story)


def test_that_the_network_was_away_is_said_when_it_is_back() -> None:
    async def story(world: World) -> None:
        post = Post(world)
        await post.start()
        await post.network("down")
        await asyncio.sleep(10 * HOUR)
        assert post.transport.asked == 0
        assert [line.partition(" is down:")[0] for line in post.lines.said] == [
            "the network", "still: the network", "still: the network",
        ]  # fmt: skip
        await post.network("")
        await asyncio.sleep(60)
        (only,) = post.transport.arrived
        assert only.title.startswith("resolved: the network (")
        assert only.body.endswith(
            "3 earlier notices of this since 2027-01-15 08:00:00 UTC were left out or interrupted."
        )
        assert only.tone == "success"

    simulate(story, {**SENT, **LAZY})


@pytest.mark.parametrize("state", ["slow", "dns-only"])
def test_a_network_on_which_something_answers_is_no_reason_to_wait(state: str) -> None:
    async def story(post: Post) -> None:
        await post.network("down")
        await post.wish("a")
        await asyncio.sleep(60)
        assert post.titles == []
        await post.network(state)
        await asyncio.sleep(1)
        assert "about a" in post.transport.arrived[0].body

    tell(story)


def test_addresses_that_are_taken_away_let_the_waiting_notices_go() -> None:
    async def story(post: Post) -> None:
        await post.network("down")
        wish = await post.wish("a")
        await asyncio.sleep(60)
        assert post.world.daemon is not None
        post.world.settings = Settings()
        post.world.daemon.request_reload()
        await asyncio.sleep(1)
        assert post.life(wish) == ["executing", "acked"]

    tell(story)


def test_addresses_that_are_taken_away_let_an_interrupted_notice_go() -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 20.0
        wish = await post.wish("a")
        await asyncio.sleep(10)
        await post.network("down")
        await post.world.crash()
        await post.start()
        await asyncio.sleep(60)
        assert post.world.daemon is not None
        assert post.life(wish) == ["executing"]
        post.world.settings = Settings()
        post.world.daemon.request_reload()
        await asyncio.sleep(1)
        assert post.life(wish) == ["executing", "executing", "acked"]

    tell(story)


# Deliveries that fail


def test_an_address_that_no_service_knows_is_said_once_and_the_others_get_their_notices() -> None:
    async def story(post: Post) -> None:
        post.transport.lost = {TWO: NOT_UNDERSTOOD, ONE: "no route"}
        wish = await post.wish("a")
        await asyncio.sleep(60)
        assert post.life(wish) == ["executing", "attempt-failed"]
        post.transport.lost = {TWO: NOT_UNDERSTOOD}
        await asyncio.sleep(600)
        assert post.life(wish)[-1] == "failed"
        assert [letter.url for letter in post.transport.arrived] == [ONE]
        other = await post.wish("b")
        await asyncio.sleep(60)
        assert post.life(other) == ["executing", "failed"]
        (error,) = post.errors
        assert error.startswith("no notices go to ")
        assert NOT_UNDERSTOOD in error
        assert post.notify.faults() == [error]

    tell(story, {**SENT, "notify": {"urls": [ONE, TWO]}})


def test_an_address_whose_service_needs_a_package_is_told_until_that_is_there() -> None:
    async def story(post: Post) -> None:
        post.transport.lost = {ONE: "it needs a moment"}  # as a service may say of itself
        wish = await post.wish("a")
        await asyncio.sleep(60)
        assert post.life(wish) == ["executing", "attempt-failed"]
        assert post.notify.faults() == []
        post.transport.lost = {ONE: UnusableAddress("it needs a-package")}
        await asyncio.sleep(600)
        (error,) = post.notify.faults()
        assert post.errors == [error]
        assert error.endswith(": it needs a-package")
        post.transport.lost = {}
        await asyncio.sleep(1_200)
        assert (post.life(wish)[-1], post.notify.faults()) == ("acked", [])

    tell(story, {**SENT, "notify": {"urls": [ONE]}})


def test_a_delivery_that_fails_is_tried_ever_more_rarely_for_a_week_and_then_given_up() -> None:
    async def story(post: Post) -> None:
        post.transport.lost[ONE] = "no route"
        wish = await post.wish("a")
        rows = []
        for _ in range(7):
            await asyncio.sleep(DAY)
            rows.append(len(post.life(wish)))
        days = [later - earlier for earlier, later in zip([0, *rows], rows, strict=False)]
        assert days[0] <= 26
        assert all(8 <= day <= 14 for day in days[1:])
        assert "failed" not in post.life(wish)
        await asyncio.sleep(6 * HOUR)
        assert post.life(wish)[-1] == "failed"
        failed = json.loads(post.world.events("effect-failed")[-1].data)
        assert failed["error"] == "json://***: no route; given up after 7 days"
        assert post.errors == ["the notice 'notify:a' is given up after 7 days: json://***: no route"]
        assert post.lines.said == ["a: about a"]

    tell(story, {**SENT, **LAZY})


def test_what_failed_goes_out_together_soon_after_something_got_through() -> None:
    async def story(post: Post) -> None:
        post.transport.lost[ONE] = "no route"
        for hour in range(8):
            await post.wish(f"n{hour}")
            await asyncio.sleep(HOUR)
        post.transport.lost.clear()
        await post.wish("fresh")
        await asyncio.sleep(20 * 60)
        assert "about fresh" in post.transport.arrived[0].body
        assert len(post.world.events("effect-acked")) == 9
        assert len(post.transport.arrived) <= 4

    tell(story, {**SENT, **LAZY})


def test_an_address_that_has_it_does_not_get_it_again() -> None:
    async def story(post: Post) -> None:
        post.transport.lost[TWO] = "error 500"
        wish = await post.wish("a")
        await asyncio.sleep(HOUR)
        error = json.loads(post.world.events("effect-attempt-failed")[0].data)["error"]
        assert re.fullmatch(r"json://\*\*\*#[0-9a-f]{4}: error 500", error), "of two that look alike"
        assert post.world.daemon is not None
        held = failure_reason(post.world.daemon.parts.view())
        there = json.loads(post.world.events("effect-attempt-failed")[0].data)["result"]["sent_to"][0]
        words = (
            f"1 reached {there} and not every address so far, and will be tried again; see upulse effect list"
        )
        assert held == words
        post.transport.lost.clear()
        await asyncio.sleep(HOUR)
        assert [letter.url for letter in post.transport.arrived] == [ONE, TWO]
        assert post.life(wish)[-1] == "acked"

    tell(story, {**LAZY, "notify": {"urls": [ONE, TWO]}})


BOTH = {**LAZY, "notify": {"urls": [ONE, TWO], "group": "0s"}}


def letters(post: Post, url: str) -> list[str]:
    return [one.title.split(" (")[0] for one in post.transport.arrived if one.url == url]


def test_a_dead_address_keeps_nothing_from_the_others_and_gets_the_newest_with_how_many_were_left_out() -> (
    None
):
    async def story(post: Post) -> None:
        post.transport.lost[TWO] = "no route"
        await post.wish("a", title="a begins")
        await asyncio.sleep(30)
        for number in range(3):
            await post.wish("a", title=f"still: a {number}")
            await asyncio.sleep(30)
        last = await post.wish("a", title="resolved: a", over=True)
        await asyncio.sleep(1)
        told = ["a begins", "still: a 0", "still: a 1", "still: a 2", "resolved: a"]
        assert letters(post, ONE) == told
        await post.world.crash()
        post.world.checkpoints = MemoryCheckpoints()
        await post.start()
        await asyncio.sleep(HOUR)
        assert letters(post, ONE) == told
        post.transport.lost.clear()
        await asyncio.sleep(3 * HOUR)
        assert (letters(post, ONE), letters(post, TWO)) == (told, ["resolved: a"])
        assert post.transport.arrived[-1].body.endswith(
            "4 earlier notices of this since 2027-01-15 08:00:00 UTC were left out."
        )
        assert post.life(last)[-1] == "acked"
        assert not post.view().notices.replaced
        assert not post.view().notices.sent_to

    tell(story, BOTH)


def test_survival_tells_the_others_at_once_that_it_is_over_while_an_address_is_dead() -> None:
    async def story(post: Post) -> None:
        post.transport.lost[TWO] = "no route"
        await post.network("slow")
        await asyncio.sleep(60)
        await post.network("")
        await asyncio.sleep(2)
        assert letters(post, ONE) == ["the network is slow", "resolved: the quality of the network"]
        await asyncio.sleep(60)
        assert len(letters(post, ONE)) == 2
        ends = [one.kind for one in post.world.events() if one.kind in {"effect-cancelled", "effect-acked"}]
        assert ends == ["effect-cancelled"]

    tell(story, {"notify": {"urls": [ONE, TWO], "group": "0s"}, "network": {"dns": ["one.example"]}})


def test_an_address_that_does_not_answer_holds_up_no_message_to_the_others() -> None:
    async def story(post: Post) -> None:
        post.transport.lost[TWO], post.transport.hang[TWO] = "no answer within 60 s", 60.0
        await post.wish("a")
        await asyncio.sleep(70)
        assert letters(post, ONE) == ["a"]
        while post.transport.asked < 2:  # until the second attempt is under way
            await asyncio.sleep(1)
        await post.wish("b")
        await post.wish("a", title="resolved: a", over=True)
        await asyncio.sleep(2)
        assert letters(post, ONE) == ["a", "b", "resolved: a"]
        post.transport.lost, post.transport.hang = {}, {}
        await asyncio.sleep(HOUR)
        assert len(letters(post, ONE)) == 3
        assert (
            "resolved: a: about a (1 earlier notice of this since 2027-01-15 08:00:00 UTC was left out or interrupted)"
            in post.transport.arrived[-1].body
        )
        assert not post.view().effects.open

    tell(story, BOTH)


def test_an_address_that_is_back_gets_a_topic_whose_notices_replace_each_other_before_their_retry() -> None:
    async def story(post: Post) -> None:
        post.transport.lost[TWO] = "no route"
        for number in range(20):
            if number == 3:
                post.transport.lost.clear()
            await post.wish("a", title=f"still: a {number}")
            await asyncio.sleep(60)
        assert letters(post, ONE) == [f"still: a {number}" for number in range(20)]
        assert letters(post, TWO)[-1] == "still: a 19"
        assert letters(post, TWO)[0] == "still: a 8", "seven minutes after it failed"

    tell(story, BOTH)


def test_what_an_address_never_got_goes_there_though_what_followed_would_not() -> None:
    async def story(post: Post) -> None:
        post.transport.lost[PAGER] = "no route"
        await post.wish("mine:a", severity="critical")
        await asyncio.sleep(1)
        await post.wish("mine:a", severity="warning", title="warnings in a")
        await post.wish("mine:b", severity="warning")
        post.transport.lost.clear()
        await asyncio.sleep(HOUR)
        assert letters(post, PAGER) == ["warnings in a"]
        assert post.transport.arrived[-1].body.endswith(
            "1 earlier notice of this since 2027-01-15 08:00:00 UTC was left out."
        )

    routes = [{"urls": [PAGER], "severity": "critical"}, {"urls": [CHAT]}]
    tell(story, {"notify": {"group": "0s"}, "notify_route": routes})


@pytest.mark.parametrize("settings", [SENT, {}])
def test_a_crash_on_the_way_loses_nothing(settings: dict[str, Any]) -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 20.0
        wishes = [await post.wish(name) for name in ("a", "b")]
        await asyncio.sleep(10)
        await post.world.crash()
        post.transport.seconds = 0.1
        await post.start()
        await asyncio.sleep(5)
        assert post.titles == (["2 notices"] if settings else [])
        assert [post.life(wish)[-1] for wish in wishes] == ["acked", "acked"]

    tell(story, settings)


def test_a_notice_that_a_crash_interrupted_is_not_said_to_be_left_out() -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 20.0
        await post.wish("a")
        await asyncio.sleep(10)
        await post.world.crash()
        post.transport.seconds, post.transport.lost[ONE] = 0.1, "no route"
        await post.start()
        await asyncio.sleep(5)
        post.transport.lost.clear()
        await post.wish("a", title="resolved: a", over=True)
        await asyncio.sleep(HOUR)
        assert post.transport.arrived[-1].body.endswith(
            "1 earlier notice of this since 2027-01-15 08:00:00 UTC was left out or interrupted."
        )
        assert not post.view().notices.interrupted

    tell(story)


def test_many_crashes_on_the_way_lose_nothing_either() -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 20.0
        wish = await post.wish("a")
        for _ in range(15):
            await asyncio.sleep(10)
            await post.world.crash()
            await post.start()
        post.transport.seconds = 0.1
        await asyncio.sleep(30)
        assert post.life(wish) == ["executing"] * len(post.life(wish)[:-1]) + ["acked"]
        assert post.titles == ["a"]

    tell(story)


def test_a_stop_does_not_wait_for_a_message_longer_than_its_grace() -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 50.0
        wish = await post.wish("a")
        await asyncio.sleep(5)
        before = asyncio.get_running_loop().time()
        await post.world.end()
        assert asyncio.get_running_loop().time() - before < 11
        await post.start()
        await asyncio.sleep(60)
        assert post.life(wish) == ["executing", "executing", "acked"]

    tell(story)


# People change their minds


def test_a_notice_that_waits_can_be_cancelled() -> None:
    async def story(post: Post) -> None:
        await post.network("down")
        first, second = await post.wish("a"), await post.wish("b")
        await asyncio.sleep(60)
        await post.world.ask(EffectCancelRequested(), first.id)
        await asyncio.sleep(2)
        assert post.life(first) == ["cancel-requested", "cancelled"]
        await post.network("")
        await asyncio.sleep(2)
        assert post.life(second) == ["executing", "acked"]
        assert "about b" in post.transport.arrived[0].body
        assert "about a" not in post.transport.arrived[0].body

    tell(story)


def test_one_that_is_on_its_way_can_be_cancelled_and_the_others_go_on() -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 20.0
        first, second = await post.wish("a"), await post.wish("b")
        await asyncio.sleep(5)
        await post.world.ask(EffectCancelRequested(), first.id)
        await asyncio.sleep(30)
        assert post.life(first)[-1] == "cancelled"
        assert post.life(second) == ["executing", "acked"]

    tell(story)


def test_when_all_of_a_message_are_cancelled_it_is_ended() -> None:
    async def story(post: Post) -> None:
        post.transport.seconds = 20.0
        wishes = [await post.wish(name) for name in ("a", "b")]
        await asyncio.sleep(5)
        for wish in wishes:
            await post.world.ask(EffectCancelRequested(), wish.id)
        await asyncio.sleep(30)
        assert [post.life(wish)[-1] for wish in wishes] == ["cancelled", "cancelled"]
        assert post.transport.arrived == []
        await post.wish("c")
        await asyncio.sleep(30)
        assert post.titles == ["c"]

    tell(story)


def test_a_paused_pulse_says_but_does_not_send() -> None:
    async def story(post: Post) -> None:
        await post.world.ask(Paused())
        await post.wish("a")
        await asyncio.sleep(60)
        assert (post.lines.said, post.transport.asked) == (["a: about a"], 0)
        await post.world.ask(Resumed())
        await asyncio.sleep(2)
        assert post.titles == ["a"]

    tell(story)


# The disk, the settings, the rules


def test_a_full_disk_does_not_keep_a_rules_notice_back() -> None:
    async def worried(prev: Snapshot, curr: Snapshot, inner: Inner) -> Verdict:
        params = {"title": "t", "text": "full"}
        notice = Effect(action="notify", key="notify:t", params=params, survival=True)
        return (await inner(prev, curr)).plus(*([notice] if curr.tick == 3 else []))

    async def story(world: World) -> None:
        post = Post(world)
        post.rules = (worried,)
        await post.start()

        async def full() -> None:
            raise LogUnavailable("the disk is full")

        world.log.commit = full
        await asyncio.sleep(60)
        assert post.lines.said == ["t: full"]
        assert post.titles == ["t"]
        world.log.commit = None
        await asyncio.sleep(5)
        assert len(world.events("effect-acked")) == 1

    simulate(story, {**SENT, "daemon": {"tick_ms": 1_000}})


def test_a_missing_variable_is_said_once_and_the_others_get_it() -> None:
    settings = {"notify": {"urls": ["env:NOT_THERE", ONE]}}

    async def story(post: Post) -> None:
        for number in range(3):
            await post.wish(f"n{number}")
            await asyncio.sleep(10)
        assert post.errors == [
            "no notices go to env:NOT_THERE: the variable is not set in the daemon's environment; "
            "set it and restart the daemon"
        ]
        assert post.titles == ["n0", "n1", "n2"]
        error = json.loads(post.world.events("effect-attempt-failed")[0].data)["error"]
        assert error == "env:NOT_THERE: its variable is not set"
        await post.world.end()
        post.environment["NOT_THERE"] = TWO
        await post.start()
        await asyncio.sleep(HOUR)
        assert {letter.url for letter in post.transport.arrived[3:]} == {TWO}
        assert len(post.world.events("effect-acked")) == 3

    tell(story, settings)


def test_a_setting_that_nothing_can_use_is_said_when_it_comes_into_force() -> None:
    async def story(post: Post) -> None:
        assert post.world.daemon is not None
        post.world.settings = Settings.model_validate({"notify": {"urls": ["env:NOT_THERE"]}})
        post.world.daemon.request_reload()
        await asyncio.sleep(1)
        assert len(post.errors) == 1

    tell(story, {})


def test_a_silence_on_notices_holds_them_back_and_lets_them_go() -> None:
    async def story(world: World) -> None:
        post = Post(world)
        await post.start()
        await world.ask(SilenceAdded(expires_us=HOUR * 1_000_000), "notify:*")
        await asyncio.sleep(60)
        world.host.dying.add("gateway")
        world.host.kill("gateway")
        await asyncio.sleep(HOUR - 120)
        assert post.lines.said == []
        by_hand = await post.wish("by hand")
        await asyncio.sleep(5)
        assert post.life(by_hand)[-1] == "acked"
        await asyncio.sleep(120)
        assert post.lines.said[1].startswith("gateway stays down")

    simulate(story, CRASHING)


@pytest.mark.parametrize("group", ["0s", "2s", "10s"])
def test_group_sets_how_long_a_notice_waits(group: str) -> None:
    async def story(post: Post) -> None:
        began = asyncio.get_running_loop().time()
        await post.wish("a")
        while not post.transport.asked:
            await asyncio.sleep(0.01)
        waited = asyncio.get_running_loop().time() - began
        assert 0 <= waited - float(group[:-1]) < 0.1

    tell(story, {"notify": {"urls": [ONE], "group": group}})


@pytest.mark.parametrize("seed", range(sample(1, 30)))
def test_whatever_happens_the_newest_notice_of_each_topic_arrives_everywhere(seed: int) -> None:
    dice, wishes, number = Random(seed), dict[str, str](), count()

    async def wish(post: Post) -> None:
        name = f"n{next(number)}."
        topic = dice.choice([name, "x", "y", "z"])
        wish = await post.wish(topic, title=name, text=f"about {name}")
        if f"about {name}" in wish.data:  # else one of this topic was being sent
            wishes[topic] = name

    async def crash(post: Post) -> None:
        await post.world.crash()
        if dice.random() < 0.3:
            post.world.checkpoints = MemoryCheckpoints()
        if dice.random() < 0.2:
            post.world.clock.reboot()
        await post.start()

    async def lose(post: Post) -> None:
        post.transport.lost = dict.fromkeys(dice.choice([[], [ONE], [TWO], [ONE, TWO]]), "no route")

    async def dawdle(post: Post) -> None:
        post.transport.seconds = dice.choice([0.1, 3.0, 80.0])

    async def turn(post: Post) -> None:
        await post.network(dice.choice(["", "down", "dns-only", "slow"]))

    async def jump(post: Post) -> None:
        post.world.clock.jump(dice.randint(-(10**10), 10**10))

    async def story(post: Post) -> None:
        deeds = (wish, wish, wish, crash, lose, dawdle, turn, jump)
        for _ in range(80):
            await dice.choice(deeds)(post)
            await asyncio.sleep(dice.expovariate(1 / dice.choice([1, 60, 3_600])))
        post.transport.lost, post.transport.seconds = {}, 0.1
        await post.network("")
        await asyncio.sleep(DAY)
        for url in (ONE, TWO):
            told = "\n".join(f"{one.title}\n{one.body}" for one in post.transport.arrived if one.url == url)
            assert [name for name in wishes.values() if f"about {name}" not in told] == []
        mine = [
            event for event in post.world.events("effect") if json.loads(event.data)["action"] == "notify"
        ]
        ends = Counter(post.life(event)[-1] for event in mine)
        assert ends.keys() <= {"acked", "cancelled"}
        assert ends["acked"] >= len(wishes)
        assert max(post.life(event).count("executing") for event in mine) < 100

    tell(story, {**SENT, **LAZY, "notify": {"urls": [ONE, TWO], "per_hour": 10}})
