"""The senses `network` and `llm` and what follows from them, as the whole daemon lives it, in virtual time."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from pulse_adapters.memory.network import MemoryProber
from pulse_core.model.kinds import Paused, ProcessStartRequested, ProcessStopRequested, Resumed
from pulse_core.ports.prober import ProbeResult, Trouble
from pulse_core.settings.settings import Settings
from tests.long_form import sample
from tests.simulation.senses import of_network
from tests.simulation.world import RARE_SCANS, World, simulate

MINUTE, HOUR = 60, 3_600
URL, PAGE = "http://127.0.0.1:4000/health", "http://192.0.2.1/"
RESTART = "restart-process:litellm"
GUARDED = {"name": "litellm", "start": ["litellm"]}
LLM: dict[str, Any] = {"llm": [{"url": URL, "restart": "litellm"}], "process": [GUARDED]}
NETWORK: dict[str, Any] = {"network": {"dns": ["one.example", "two.example"], "http": [PAGE]}}
REMOTE: dict[str, Any] = {
    **NETWORK, "llm": [{"url": "https://llm.example/", "restart": "litellm"}], "process": [GUARDED]
}  # fmt: skip
DEAD = ProbeResult(Trouble.TIMEOUT, "nobody answered", 5_000)


class Outside:
    """A world with a network, and the words to ask what happened."""

    def __init__(self, world: World) -> None:
        self.world, self.prober = world, MemoryProber()
        self.senses()

    def senses(self) -> None:
        """New senses, as a new daemon has them."""
        self.world.watchers = of_network(self.world, self.prober)

    async def again(self, away: float = 0) -> None:
        """The daemon dies, and another one takes its place so many seconds later."""
        await self.world.crash()
        self.senses()
        await asyncio.sleep(away)
        await self.world.start()

    def cut(self, *targets: str) -> None:
        """These answer no more."""
        self.prober.says |= dict.fromkeys(targets, DEAD)

    def news(self) -> list[str]:
        """What was concluded of conditions, in order: + or -, the name, and the state."""
        events = self.world.events("condition-raised", "condition-cleared")
        states = [json.loads(event.data).get("state", "") for event in events]
        signs = ["+" if event.kind == "condition-raised" else "-" for event in events]
        return [
            f"{sign}{event.subject} {state}".strip()
            for sign, event, state in zip(signs, events, states, strict=True)
        ]

    def restarts(self) -> list[float]:
        """When a restart of a process was wished, seconds, without its first start."""
        return [event.mono / 1e6 for event in self.world.events("effect", subject=RESTART)][1:]

    def titles(self) -> list[str]:
        """What people were told."""
        events = [one for one in self.world.events("effect") if one.subject != "notify:daemon"]
        wishes = [json.loads(event.data) for event in events]
        return [wish["params"]["title"] for wish in wishes if wish["action"] == "notify"]


def live(story: Callable[[Outside], Awaitable[None]], settings: dict[str, Any]) -> None:
    """Tell a story that begins with ten minutes in which all is well."""
    live_with(story, settings, {})


def live_with(
    story: Callable[[Outside], Awaitable[None]], settings: dict[str, Any], says: dict[str, ProbeResult]
) -> None:
    """The same, with these answers from the beginning on."""

    async def told(world: World) -> None:
        outside = Outside(world)
        outside.prober.says |= says
        await world.start()
        await asyncio.sleep(10 * MINUTE)
        assert (outside.news(), outside.titles()) == ([], [])
        await story(outside)

    simulate(told, {**RARE_SCANS, **settings})


# The network


def test_nothing_is_asked_where_nothing_is_configured() -> None:
    async def story(outside: Outside) -> None:
        await asyncio.sleep(3 * HOUR)
        assert outside.prober.asked == []
        assert outside.world.events("error") == []

    live(story, {})


def test_an_outage_is_known_after_three_rounds_told_once_and_called_off() -> None:
    async def story(outside: Outside) -> None:
        outside.cut("one.example", "two.example", PAGE)
        await asyncio.sleep(MINUTE)
        assert outside.news() == []
        await asyncio.sleep(MINUTE)
        assert (outside.news(), outside.titles()) == (["+network down"], ["the network is down"])
        await asyncio.sleep(HOUR)
        outside.prober.says.clear()
        await asyncio.sleep(2 * MINUTE)
        assert outside.news() == ["+network down", "-network"]
        assert outside.titles() == ["the network is down", "resolved: the network"]

    live(story, NETWORK)


def test_one_bad_round_is_nothing() -> None:
    async def story(outside: Outside) -> None:
        for _ in range(20):
            outside.cut("one.example", "two.example", PAGE)
            await asyncio.sleep(MINUTE)
            outside.prober.says.clear()
            await asyncio.sleep(MINUTE)
        assert (outside.news(), outside.titles()) == ([], [])

    live(story, NETWORK)


def test_what_fails_is_told_apart() -> None:
    async def story(outside: Outside) -> None:
        for targets, answer in (
            (("one.example", "two.example"), DEAD),
            ((PAGE,), DEAD),
            ((PAGE,), ProbeResult(Trouble.TLS_EXPIRED, "its certificate has expired")),
            (("one.example", "two.example"), ProbeResult(addresses=("0.0.0.0",))),
            (("one.example", "two.example"), ProbeResult(addresses=("10.0.0.1",))),
            (("one.example", "two.example", PAGE), ProbeResult(took_ms=3_000, status=200)),
        ):
            outside.prober.says = dict.fromkeys(targets, answer)
            await asyncio.sleep(3 * MINUTE)
            outside.prober.says.clear()
            await asyncio.sleep(3 * MINUTE)
        states = [line.partition(" ")[2] for line in outside.news() if line.startswith("+")]
        assert states == ["dns-only", "http-only", "degraded", "dns-only", "dns-only", "slow"]
        words = [json.loads(event.data)["evidence"] for event in outside.world.events("condition-raised")]
        assert "its certificate has expired" in words[2]
        assert "0.0.0.0, which is no host's address" in words[3]
        assert "10.0.0.1, a private address, where a public one was before" in words[4]

    live(story, NETWORK)


def test_rounds_of_before_a_restart_of_pulse_count_after_it() -> None:
    async def story(outside: Outside) -> None:
        outside.cut("one.example", "two.example", PAGE)
        for _ in range(5):
            await asyncio.sleep(40)
            await outside.again()
        assert outside.news() == ["+network down"]
        assert outside.world.events("error") == []
        await outside.again(away=HOUR)
        await asyncio.sleep(5 * MINUTE)
        assert (outside.news(), outside.titles()) == (["+network down"], ["the network is down"])

    live(story, NETWORK)


def test_what_is_not_watched_any_more_is_not_wrong_any_more() -> None:
    async def story(outside: Outside) -> None:
        outside.cut("one.example", "two.example", PAGE, URL)
        await asyncio.sleep(3 * MINUTE)
        assert outside.news() == [f"+llm:{URL} down", "+network down"]
        outside.world.settings = Settings()
        assert outside.world.daemon is not None
        outside.world.daemon.request_reload()
        await asyncio.sleep(MINUTE)
        assert sorted(outside.news()[2:]) == [f"-llm:{URL}", "-network"]

    live(story, {**NETWORK, "llm": [{"url": URL}]})


def test_a_prober_that_cannot_ask_is_reported_and_proves_nothing() -> None:
    async def story(outside: Outside) -> None:
        unasked = ProbeResult(Trouble.UNASKED, "no module named httpx")
        outside.prober.says = dict.fromkeys(("one.example", "two.example", PAGE, URL), unasked)
        await asyncio.sleep(HOUR)
        assert (outside.news(), outside.restarts()) == ([], [])
        whose = {event.subject for event in outside.world.events("error")}
        assert whose == {"watcher:network", "watcher:llm"}

    live(story, {**NETWORK, **LLM})


# The LLM


def heal(outside: Outside, url: str = URL) -> None:
    """From the next restart on it answers."""

    async def deed(_event: object) -> None:
        outside.prober.says.pop(url, None)

    outside.world.executors["restart-process"].deed = deed


def test_an_endpoint_that_does_not_answer_is_restarted_and_nobody_is_woken() -> None:
    async def story(outside: Outside) -> None:
        heal(outside)
        outside.cut(URL)
        await asyncio.sleep(30)
        assert outside.restarts() == []
        await asyncio.sleep(HOUR)
        assert len(outside.restarts()) == 1
        assert (outside.news(), outside.titles()) == ([f"+llm:{URL} down", f"-llm:{URL}"], [])

    live(story, LLM)


def test_two_failures_kill_nothing_however_often_they_come() -> None:
    async def story(outside: Outside) -> None:
        for _ in range(50):
            outside.cut(URL)
            await asyncio.sleep(30)
            outside.prober.says.clear()
            await asyncio.sleep(30)
        assert (outside.news(), outside.restarts()) == ([], [])

    live(story, LLM)


def test_a_restart_in_vain_is_followed_by_a_word_and_by_patience() -> None:
    async def story(outside: Outside) -> None:
        outside.cut(URL)
        hours = sample(3, 24)
        await asyncio.sleep(hours * HOUR)
        assert 6 + hours / 2 < len(outside.restarts()) < 10 + hours
        told = [title for title in outside.titles() if "still" not in title]
        # That it does, and that the budget of its restarts is spent.
        assert told == [f"{URL} gives no good answer"] * 2
        outside.prober.says.clear()
        await asyncio.sleep(5 * MINUTE)
        assert outside.titles()[-1] == f"resolved: {URL}"

    live(story, LLM)


def test_a_slow_start_is_waited_for() -> None:
    async def story(outside: Outside) -> None:
        async def deed(_event: object) -> None:
            asyncio.get_running_loop().call_later(58, outside.prober.says.clear)

        outside.world.executors["restart-process"].deed = deed
        outside.cut(URL)
        await asyncio.sleep(HOUR)
        assert len(outside.restarts()) == 1

    live(story, LLM)


def test_one_failure_after_the_grace_is_no_reason_for_a_second_restart() -> None:
    async def story(outside: Outside) -> None:
        async def deed(_event: object) -> None:
            asyncio.get_running_loop().call_later(10, outside.prober.says.clear)
            asyncio.get_running_loop().call_later(65, outside.cut, URL)
            asyncio.get_running_loop().call_later(85, outside.prober.says.clear)

        outside.world.executors["restart-process"].deed = deed
        outside.cut(URL)
        await asyncio.sleep(HOUR)
        assert len(outside.restarts()) == 1

    live(story, LLM)


def test_a_dead_process_is_the_process_watchdogs_alone() -> None:
    async def story(outside: Outside) -> None:
        outside.world.host.dying.add("litellm")
        outside.world.host.kill("litellm")
        outside.cut(URL)
        await asyncio.sleep(20 * MINUTE)
        assert outside.news() == []
        wished = [json.loads(event.data) for event in outside.world.events("effect", subject=RESTART)]
        assert {wish["rule"] for wish in wished} == {"process_watchdog"}
        assert outside.titles() == ["litellm stays down"]

    live(story, LLM)


def test_a_commanded_stop_is_not_fought_and_a_start_has_its_grace() -> None:
    async def story(outside: Outside) -> None:
        await outside.world.ask(ProcessStopRequested(expires_us=10 * HOUR * 1_000_000), "litellm")
        outside.cut(URL)
        await asyncio.sleep(HOUR)
        assert (outside.news(), outside.restarts()) == ([], [])
        await outside.world.ask(ProcessStartRequested(), "litellm")
        await asyncio.sleep(55)
        outside.prober.says.clear()
        await asyncio.sleep(HOUR)
        assert outside.news() == []
        assert len(outside.restarts()) == 1

    live(story, LLM)


def test_a_pause_is_kept_and_what_it_held_back_is_done_after_it() -> None:
    async def story(outside: Outside) -> None:
        await outside.world.ask(Paused())
        outside.cut(URL)
        await asyncio.sleep(HOUR)
        assert (outside.news(), outside.restarts()) == ([f"+llm:{URL} down"], [])
        heal(outside)
        await outside.world.ask(Resumed())
        await asyncio.sleep(MINUTE)
        assert len(outside.restarts()) == 1

    live(story, LLM)


def test_an_outage_of_the_network_restarts_nothing_and_is_told_once() -> None:
    async def story(outside: Outside) -> None:
        outside.cut("one.example", "two.example", PAGE, "https://llm.example/")
        await asyncio.sleep(3 * HOUR)
        assert outside.restarts() == []
        assert outside.titles() == ["the network is down"]
        outside.prober.says.clear()
        await asyncio.sleep(HOUR)
        assert outside.restarts() == []
        assert outside.titles() == ["the network is down", "resolved: the network"]

    live(story, REMOTE)


def test_an_endpoint_that_alone_does_not_answer_is_restarted_however_far_it_is() -> None:
    async def story(outside: Outside) -> None:
        heal(outside, "https://llm.example/")
        outside.cut("https://llm.example/")
        await asyncio.sleep(2 * MINUTE)
        assert len(outside.restarts()) == 1

    live(story, REMOTE)


def test_daemons_that_die_young_together_see_what_one_would() -> None:
    async def story(outside: Outside) -> None:
        heal(outside)
        outside.cut(URL)
        for _ in range(6):
            await asyncio.sleep(12)
            await outside.again()
        assert len(outside.restarts()) == 1

    live(story, LLM)


def test_a_daemon_that_dies_in_the_middle_of_the_restart_makes_one() -> None:
    async def story(outside: Outside) -> None:
        async def deed(_event: object) -> None:
            if len(outside.restarts()) == 1 and outside.world.daemon is first:
                await asyncio.sleep(HOUR)
            outside.prober.says.clear()

        first = outside.world.daemon
        outside.world.executors["restart-process"].deed = deed
        outside.cut(URL)
        await asyncio.sleep(MINUTE)
        await outside.again()
        await asyncio.sleep(HOUR)
        assert len(outside.restarts()) == 1
        assert outside.news() == [f"+llm:{URL} down", f"-llm:{URL}"]

    live(story, LLM)


def test_a_slow_endpoint_keeps_no_other_one_waiting() -> None:
    async def story(outside: Outside) -> None:
        other = "http://127.0.0.1:4001/"
        outside.prober.silent.add(URL)
        outside.prober.asked.clear()
        await asyncio.sleep(10 * MINUTE)
        asked = [question.target for question in outside.prober.asked]
        assert asked.count(other) > 560
        assert asked.count(URL) in range(4, 7)

    settings = [
        {"url": URL, "timeout": "2m", "evidence": 99},
        {"url": "http://127.0.0.1:4001/", "interval": "1s"},
    ]
    live(story, {"llm": settings})


# Every setting makes a difference


def minutes_until_news(settings: dict[str, Any], answer: ProbeResult = DEAD) -> float:
    """How long the network must look like this before that is concluded; an hour if it never is."""
    took: list[float] = []

    async def story(outside: Outside) -> None:
        began = asyncio.get_running_loop().time()
        outside.prober.says = dict.fromkeys(("one.example", "two.example", PAGE), answer)
        while not outside.news() and asyncio.get_running_loop().time() < began + HOUR:
            await asyncio.sleep(1)
        took.append((asyncio.get_running_loop().time() - began) / MINUTE)

    live(story, {"network": {**NETWORK["network"], **settings}})
    return took[0]


def test_interval_evidence_and_slow_of_the_network_make_a_difference() -> None:
    assert 1 <= minutes_until_news({}) <= 2
    assert minutes_until_news({"interval": "5s"}) < 0.6
    assert 4 <= minutes_until_news({"evidence": 10}) <= 6
    late = ProbeResult(took_ms=1_000, status=200)
    assert minutes_until_news({}, late) >= 60
    assert minutes_until_news({"slow": "500ms"}, late) <= 2


def test_timeouts_and_resolvers_go_with_the_questions() -> None:
    async def story(outside: Outside) -> None:
        asked = {
            (question.target, question.timeout_us, question.servers) for question in outside.prober.asked
        }
        assert asked == {
            ("one.example", 3_000_000, ("127.0.0.1#5353",)),
            (PAGE, 3_000_000, ()),
            (URL, 7_000_000, ()),
        }

    network = {"dns": ["one.example"], "http": [PAGE], "timeout": "3s", "resolvers": ["127.0.0.1#5353"]}
    live(story, {"network": network, "llm": [{"url": URL, "timeout": "7s"}]})


def seconds_of_restarts(settings: dict[str, Any]) -> list[float]:
    """How long after an endpoint has died for good its process is restarted for the first and the second time."""
    found: list[float] = []

    async def story(outside: Outside) -> None:
        began = asyncio.get_running_loop().time()
        outside.prober.says[URL] = ProbeResult(Trouble.REFUSED, "the connection is refused", 1)
        async with asyncio.timeout(HOUR):
            while len(outside.restarts()) < 2:
                await asyncio.sleep(1)
        found.extend(second - began for second in outside.restarts())

    live(story, {**LLM, "llm": [{"url": URL, "restart": "litellm", **settings}]})
    return found


def test_interval_evidence_and_grace_of_an_endpoint_make_a_difference() -> None:
    first, second = seconds_of_restarts({})
    assert 30 <= first <= 50
    assert 60 + 30 <= second - first <= 60 + 60
    assert seconds_of_restarts({"interval": "1s"})[0] < 5
    assert 130 <= seconds_of_restarts({"evidence": 10})[0] <= 155
    first, second = seconds_of_restarts({"grace": "5m"})
    assert 5 * MINUTE < second - first < 7 * MINUTE


# Gateways


BASE = "http://127.0.0.1:4000"
PROXY: dict[str, Any] = {
    "llm": [{"url": BASE, "kind": "litellm", "restart": "litellm", "models": "15s"}], "process": [GUARDED]
}  # fmt: skip
WELL = ProbeResult(took_ms=5, status=200, body='{"healthy_endpoints": [], "unhealthy_endpoints": []}')
FAILING = '{"healthy_endpoints": [], "unhealthy_endpoints": [{"model": "openai/gpt-4o"}]}'


def test_a_proxy_that_is_down_is_restarted_and_a_provider_that_is_down_is_only_told() -> None:
    async def story(outside: Outside) -> None:
        outside.prober.says = {f"{BASE}/health": WELL._replace(body=FAILING)}
        await asyncio.sleep(HOUR)
        assert (outside.news(), outside.restarts()) == ([f"+llm:{BASE}/health provider"], [])
        assert outside.titles() == [f"{BASE}/health gives no good answer"]
        outside.prober.says = {f"{BASE}/health": WELL}
        await asyncio.sleep(2 * MINUTE)
        assert outside.news()[1:] == [f"-llm:{BASE}/health"]

        async def deed(_event: object) -> None:
            outside.prober.says = {f"{BASE}/health": WELL}

        outside.world.executors["restart-process"].deed = deed
        outside.cut(f"{BASE}/health/liveliness", f"{BASE}/health/readiness", f"{BASE}/health")
        await asyncio.sleep(HOUR)
        # Of a proxy that is down, nothing else is said, and its endpoints are no alarms of their own.
        assert outside.news()[2:] == [f"+llm:{BASE}/health/liveliness down", f"-llm:{BASE}/health/liveliness"]
        assert len(outside.restarts()) == 1
        assert outside.titles()[1:] == [f"resolved: {BASE}/health"]

    live_with(story, PROXY, {f"{BASE}/health": WELL})


def test_a_proxy_that_is_not_ready_is_not_restarted() -> None:
    async def story(outside: Outside) -> None:
        body = '{"status": "healthy", "db": "disconnected"}'
        outside.prober.says |= {f"{BASE}/health/readiness": ProbeResult(took_ms=5, status=503, body=body)}
        await asyncio.sleep(HOUR)
        assert (outside.news(), outside.restarts()) == ([f"+llm:{BASE}/health/readiness not-ready"], [])

    live_with(story, PROXY, {f"{BASE}/health": WELL})
