"""What follows from rounds of questions to the network."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pulse_core.model.kinds import ConditionCleared, ConditionRaised
from pulse_core.model.moment import Moment
from pulse_core.model.vitals import Sample, Window
from pulse_core.ports.prober import ProbeRequest, ProbeResult, Trouble
from pulse_core.projections.conditions import Condition
from pulse_core.projections.state import State
from pulse_core.settings.network import NetworkSettings
from pulse_core.settings.settings import Settings
from pulse_core.watch.evaluate_network import (
    TargetAnswer,
    check_answer,
    conclude,
    implausibility,
    state_of,
)
from pulse_core.watch.network import Network

SLOW = 2_000_000
GOOD = ProbeResult(took_ms=10)
LATE = ProbeResult(took_ms=2_000)
DEAD = ProbeResult(Trouble.TIMEOUT, "nobody answered")
WRONG = ProbeResult(Trouble.NXDOMAIN, "there is no such name")
EXPIRED = ProbeResult(Trouble.TLS_EXPIRED, "its certificate has expired")
ILL = ProbeResult(Trouble.STATUS, "it answered 503", status=503)
STALLED = ProbeResult(Trouble.STALLED, "it took the connection, but did not answer within 5 s")
UNASKED = ProbeResult(Trouble.UNASKED, "the process that asks died")


def seen(dns: tuple[ProbeResult, ...] = (), http: tuple[ProbeResult, ...] = ()) -> list[TargetAnswer]:
    names = [TargetAnswer(ProbeRequest("dns", f"n{n}.example", 5), answer) for n, answer in enumerate(dns)]
    return [
        *names,
        *(TargetAnswer(ProbeRequest("http", f"http://p{n}/", 5), answer) for n, answer in enumerate(http)),
    ]


@pytest.mark.parametrize(
    ("dns", "http", "state"),
    [
        ((GOOD, GOOD), (GOOD,), ""),
        ((), (GOOD,), ""),
        ((DEAD, DEAD), (DEAD,), "down"),
        ((DEAD,), (), "down"),
        ((WRONG, DEAD), (), "dns-only"),
        ((WRONG, WRONG), (DEAD,), "down"),
        ((), (DEAD, STALLED), "down"),
        ((DEAD, DEAD), (GOOD, DEAD), "dns-only"),
        ((DEAD,), (EXPIRED,), "dns-only"),
        ((GOOD, DEAD), (DEAD, DEAD), "http-only"),
        ((LATE,), (DEAD,), "http-only"),
        ((GOOD, DEAD), (GOOD,), "degraded"),
        ((GOOD,), (GOOD, DEAD), "degraded"),
        ((GOOD,), (EXPIRED,), "degraded"),
        ((), (ILL, EXPIRED), "degraded"),
        ((LATE, LATE), (GOOD,), "slow"),
        ((GOOD,), (LATE, DEAD), "slow"),
        ((GOOD, LATE), (GOOD,), ""),
        ((UNASKED, GOOD), (GOOD,), ""),
        ((UNASKED, DEAD), (GOOD,), "dns-only"),
        ((UNASKED,), (DEAD,), None),
    ],
)
def test_one_round_says_how_the_network_looks(
    dns: tuple[ProbeResult, ...], http: tuple[ProbeResult, ...], state: str | None
) -> None:
    assert state_of(seen(dns, http), SLOW) == state


def news(rounds: str, stands: str = "", evidence: int = 3) -> Mapping[str, Any] | None:
    """What is concluded when the rounds so far looked like this: a letter each, W(ell), D(own), S(low), P(artly)."""
    states = [{"W": "", "D": "down", "S": "slow", "P": "degraded"}[letter] for letter in rounds]
    moment = Moment(0, "boot", 0)
    condition = Condition(moment, stands, moment, "it was so") if stands else None
    answers = seen((DEAD,), (DEAD,))
    drafts = conclude(answers, states, condition, NetworkSettings(evidence=evidence))
    assert len(drafts) <= 1
    assert all(draft.subject == "network" for draft in drafts)
    match [draft.payload for draft in drafts]:
        case [ConditionRaised() as raised]:
            return {"state": raised.state, "evidence": raised.evidence}
        case [ConditionCleared() as cleared]:
            return {"state": "", "evidence": cleared.evidence}
    return None


async def test_an_outage_begins_with_the_first_of_the_bad_rounds() -> None:
    said, window = list[Any](), Window()
    answers = iter([GOOD, DEAD, DEAD, DEAD])

    class Asked:
        def ask(self, question: ProbeRequest) -> asyncio.Future[ProbeResult]:
            (answer := asyncio.Future[ProbeResult]()).set_result(next(answers))
            return answer

    settings = Settings.model_validate({"network": {"dns": ["a.example"]}})
    watcher = Network(Asked(), lambda: settings, State, lambda: window)
    for second in range(4):
        reading = await watcher.collect()
        said += reading.conclusions
        window = window.plus(
            Sample(second, "network", Moment(second + 10, "boot", second + 10), reading.data)
        )
    (draft,) = said
    assert (draft.payload.state, draft.payload.failing) == ("down", 11)


@pytest.mark.parametrize(
    ("rounds", "stands", "state"),
    [
        ("D", "", None),
        ("DD", "", None),
        ("DDD", "", "down"),
        ("DDWD", "", None),
        ("DDWDDD", "", "down"),
        ("DSP", "", "degraded"),
        ("DSW", "", None),
        ("DDDD", "down", None),
        ("DDSS", "down", None),
        ("DSSS", "down", "slow"),
        ("DSPS", "down", None),
        ("DWW", "down", None),
        ("DWWW", "down", ""),
        ("DWWDW", "down", None),
        ("WWW", "", None),
    ],
)
def test_only_rounds_in_a_row_that_agree_change_anything(rounds: str, stands: str, state: str | None) -> None:
    said = news(rounds, stands)
    assert (said["state"] if said else None) == state


def test_as_many_rounds_as_the_settings_want() -> None:
    assert news("DDDD", evidence=5) is None
    assert news("DDDDD", evidence=5) is not None
    assert news("D", evidence=1) is not None


def test_the_evidence_names_the_targets_and_what_they_did() -> None:
    said = news("DDD")
    assert said == {
        "state": "down",
        "evidence": "nothing that is asked answers, 3 rounds in a row:"
        " n0.example: nobody answered; http://p0/: nobody answered",
    }


def test_what_is_slow_is_told_of_those_that_are() -> None:
    """Names that are answered at once are no late answers, and the late ones are named beside what fails."""
    settings = NetworkSettings(dns=("n0.example",), http=("http://p0/", "http://p1/"), evidence=1)
    (draft,) = conclude(seen((GOOD,), (LATE, DEAD)), ["slow"], None, settings)
    assert isinstance(draft.payload, ConditionRaised)
    assert draft.payload.evidence == (
        "every page takes 2 s or longer, 1 round: n0.example: answered in 10 ms;"
        " http://p0/: answered in 2000 ms; http://p1/: nobody answered"
    )
    (draft,) = conclude(seen((LATE,), (LATE, LATE)), ["slow"], None, settings)
    assert isinstance(draft.payload, ConditionRaised)
    assert draft.payload.evidence.startswith("every answer takes 2 s or longer, 1 round: ")


def test_of_many_targets_a_few_are_named() -> None:
    answers = seen(tuple([DEAD] * 9))
    (draft,) = conclude(answers, ["down"], None, NetworkSettings(evidence=1))
    assert isinstance(draft.payload, ConditionRaised)
    assert draft.payload.evidence.count("nobody answered") == 5
    assert draft.payload.evidence.endswith("; and 4 more")


@pytest.mark.parametrize(
    ("answer", "trouble", "words"),
    [
        (ProbeResult(status=200), None, ""),
        (ProbeResult(status=404), None, ""),
        (ProbeResult(status=500), Trouble.STATUS, "it answered 500"),
        (
            ProbeResult(addresses=("0.0.0.0",)),
            Trouble.LIE,
            "the answer is 0.0.0.0, which is no host's address",
        ),
        (DEAD, Trouble.TIMEOUT, "nobody answered"),
    ],
)
def test_an_answer_may_be_wrong_all_the_same(
    answer: ProbeResult, trouble: Trouble | None, words: str
) -> None:
    found = check_answer(ProbeRequest("http", "x.example", 5), answer, False)
    assert (found.trouble, found.detail) == (trouble, words)


@pytest.mark.parametrize(
    ("name", "address", "was_public", "is_lie"),
    [
        ("debian.org", "151.101.2.132", False, False),
        ("debian.org", "0.0.0.0", False, True),
        ("one.example", "::", False, True),
        ("debian.org", "127.0.0.1", False, True),
        ("debian.org.", "::1", False, True),
        ("one.example", "127.0.0.1", False, False),
        ("localhost", "127.0.0.1", False, False),
        ("box.home.arpa", "127.0.0.1", False, False),
        ("git.company.com", "10.1.2.3", False, False),
        ("git.company.com", "10.1.2.3", True, True),
        ("one.example", "127.0.0.1", True, True),
        ("one.example", "fd00::1", True, True),
        ("one.example", "192.0.2.1", True, False),
    ],
)
def test_what_cannot_be_true_is_a_lie(name: str, address: str, was_public: bool, is_lie: bool) -> None:
    assert bool(implausibility(name, [address], was_public)) == is_lie
