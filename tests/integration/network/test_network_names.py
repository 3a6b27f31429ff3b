"""Real DNS servers on loopback that answer, refuse, lie, stall and talk nonsense are told apart."""

import dns.rcode
import pytest

from pulse_adapters.network.prober import ChildProber
from pulse_core.ports.prober import ProbeRequest, ProbeResult, Trouble
from tests.integration.network.network_servers import Reply, addresses, name_server, truncated
from tests.long_form import sampled

SECOND = 1_000_000


async def asked(
    prober: ChildProber, *servers: str, seconds: float = 30, name: str = "one.example"
) -> ProbeResult:
    return await prober.ask(ProbeRequest("dns", name, round(seconds * SECOND), servers))


def another_question(packet: bytes) -> bytes | None:
    """Answer a question that was not asked."""
    return addresses("192.0.2.1")(packet.replace(b"one", b"two"))


def nonsense(packet: bytes) -> bytes:
    """Answer with bytes that are no message."""
    return packet[:2] + bytes([255] * 20)


@pytest.mark.parametrize(
    ("reply", "trouble", "words"),
    sampled(
        [
            (addresses(code=dns.rcode.NXDOMAIN), Trouble.NXDOMAIN, "no such name"),
            (addresses(), Trouble.NO_ADDRESS, "no address of it"),
            (addresses(code=dns.rcode.REFUSED), Trouble.REFUSED, "refuses to answer"),
            (addresses(code=dns.rcode.SERVFAIL), Trouble.SERVFAIL, "cannot answer (SERVFAIL)"),
            (another_question, Trouble.BROKEN, "something else than was asked"),
            (nonsense, Trouble.BROKEN, "answered"),
        ],
        2,
    ),
)
async def test_each_way_of_failing_has_a_name(
    prober: ChildProber, reply: Reply, trouble: Trouble, words: str
) -> None:
    async with name_server(reply) as server:
        answer = await asked(prober, server)
    assert answer.trouble is trouble
    assert server in answer.detail
    assert words in answer.detail


@pytest.mark.wall_clock
async def test_a_silent_server_is_given_its_time_and_no_more(prober: ChildProber) -> None:
    async with name_server(lambda _: None) as server:
        answer = await asked(prober, server, seconds=0.3)
    assert (answer.trouble, answer.detail) == (Trouble.TIMEOUT, f"{server} did not answer within 0.3 s")
    assert 290 <= answer.took_ms < 10_000


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
async def test_a_name_has_its_addresses(prober: ChildProber, address: str) -> None:
    async with name_server(addresses(address)) as server:
        answer = await asked(prober, server)
    assert (answer.trouble, answer.addresses) == (None, (address,))
    assert 0 < answer.took_ms < 30_000


async def test_an_answer_too_long_for_udp_is_fetched_by_tcp(prober: ChildProber) -> None:
    many = [f"192.0.2.{number}" for number in range(1, 200)]
    async with name_server(truncated, addresses(*many)) as server:
        answer = await asked(prober, server)
    assert sorted(answer.addresses) == sorted(many)


MANY = addresses(*[f"192.0.{number // 250}.{number % 250}" for number in range(300)])


@pytest.mark.parametrize("by_udp", [MANY, truncated])
async def test_no_answer_is_read_that_takes_long(prober: ChildProber, by_udp: Reply) -> None:
    async with name_server(by_udp, MANY) as server:
        answer = await asked(prober, server)
    assert answer.trouble is Trouble.BROKEN
    assert "at most 4,096 are read" in answer.detail


async def test_the_next_server_is_asked_when_one_does_not_answer(prober: ChildProber) -> None:
    async with name_server(lambda _: None) as silent, name_server(addresses("192.0.2.7")) as good:
        answer = await asked(prober, silent, good, seconds=3)
    assert answer.addresses == ("192.0.2.7",)


async def test_what_one_server_knows_for_sure_is_not_asked_of_another(prober: ChildProber) -> None:
    late: list[bytes] = []
    async with (
        name_server(addresses(code=dns.rcode.NXDOMAIN)) as first,
        name_server(addresses("192.0.2.7"), asked=late) as second,
    ):
        assert (await asked(prober, first, second)).trouble is Trouble.NXDOMAIN
    assert late == []


async def test_all_servers_that_failed_are_named(prober: ChildProber) -> None:
    async with (
        name_server(addresses(code=dns.rcode.REFUSED)) as one,
        name_server(addresses(code=dns.rcode.SERVFAIL)) as other,
    ):
        answer = await asked(prober, one, other)
    assert answer.trouble is Trouble.SERVFAIL
    assert one in answer.detail
    assert other in answer.detail


@pytest.mark.parametrize(
    ("server", "name", "words"),
    [
        ("999.1.1.1", "one.example", "'999.1.1.1' is no DNS server"),
        ("127.0.0.1", "one..example", "'one..example' is no domain name"),
    ],
)
async def test_what_cannot_be_asked_says_nothing_about_the_target(
    prober: ChildProber, server: str, name: str, words: str
) -> None:
    answer = await asked(prober, server, name=name)
    assert answer.trouble is Trouble.UNASKED
    assert words in answer.detail
