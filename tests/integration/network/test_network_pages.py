"""Real HTTP servers on loopback that die, stall, dribble, and show all kinds of certificates are told apart."""

import asyncio
import json
import socket

import pytest

from pulse_adapters.network.http import fetch
from pulse_adapters.network.prober import ChildProber
from pulse_core.ports.prober import ProbeRequest, ProbeResult, Trouble
from tests.integration.network.gateway_server import LITELLM, gateway
from tests.integration.network.network_servers import (
    ENDLESS,
    OK,
    Serve,
    dribbles,
    floods,
    page_server,
    says,
    stalls,
)
from tests.long_form import sampled

SECOND = 1_000_000
HEADERS = b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000


async def fetched(prober: ChildProber, url: str, seconds: float = 30) -> ProbeResult:
    return await prober.ask(ProbeRequest("http", url, round(seconds * SECOND)))


@pytest.mark.parametrize("status", sampled([200, 204, 301, 404, 500, 503], 3))
async def test_a_whole_answer_is_an_answer_whatever_it_says(prober: ChildProber, status: int) -> None:
    said = b"HTTP/1.1 %d X\r\nContent-Length: 0\r\nLocation: /x\r\n\r\n" % status
    async with page_server(says(said)) as port:
        answer = await fetched(prober, f"http://127.0.0.1:{port}/")
        asked = ProbeRequest("http", f"http://127.0.0.1:{port}/", 30 * SECOND, body="ok")
        unlike = await prober.ask(asked)
    assert (answer.trouble, answer.status) == (None, status)
    assert (unlike.trouble, unlike.status) == (Trouble.BODY, status)
    assert 0 < answer.took_ms < 30_000


@pytest.mark.wall_clock
@pytest.mark.parametrize(
    ("serve", "trouble", "words"),
    sampled(
        [
            (stalls, Trouble.STALLED, "took the connection, but did not answer within 1.5 s"),
            (says(b"HTTP/1.1 200 OK\r\nX: ", then=dribbles), Trouble.STALLED, "did not answer"),
            (
                says(ENDLESS, then=stalls),
                Trouble.ENDLESS,
                "answered 200, but did not come to an end within 1.5 s",
            ),
            (
                says(ENDLESS, then=dribbles),
                Trouble.ENDLESS,
                "answered 200, but did not come to an end within 1.5",
            ),
            (says(b""), Trouble.CLOSED, "closed the connection without an answer"),
            (says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), Trouble.CLOSED, "middle of its answer"),
            (says(b"220 mail.example ESMTP\r\n\r\n"), Trouble.BROKEN, "that is no HTTP"),
            (says(HEADERS, then=stalls), Trouble.BROKEN, "that is no HTTP"),
        ],
        3,
    ),
)
async def test_each_way_of_failing_has_a_name(
    prober: ChildProber, serve: Serve, trouble: Trouble, words: str
) -> None:
    async with page_server(serve) as port:
        answer = await fetched(prober, f"http://127.0.0.1:{port}/", 1.5)
    assert (answer.trouble, answer.detail) == (trouble, answer.detail)
    assert words in answer.detail
    assert answer.took_ms < 10_000


async def test_what_was_sent_is_quoted_as_text(prober: ChildProber) -> None:
    async with page_server(says(b"ELEPHANT\r\n\r\n")) as port:
        answer = await fetched(prober, f"http://127.0.0.1:{port}/", 30)
    assert answer.detail == "that is no HTTP: illegal status line: 'ELEPHANT'"
    page = b"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n"
    async with page_server(says(page)) as port:
        asked = ProbeRequest("http", f"http://127.0.0.1:{port}/", 30 * SECOND, body="plan b'.*'")
        answer = await prober.ask(asked)
    assert answer.detail == """it answered 200, and "plan b'.*'" is not in its body""", (
        "no library wrote that"
    )


async def test_what_is_too_much_is_not_read_to_its_end(prober: ChildProber) -> None:
    async with page_server(says(ENDLESS, then=floods)) as port:
        answer = await fetched(prober, f"http://127.0.0.1:{port}/", 30)
    assert answer.trouble is Trouble.ENDLESS
    assert answer.detail == "it answered 200, and did not come to an end after 1048576 bytes"


async def test_nobody_listens(prober: ChildProber) -> None:
    async with page_server(stalls) as port:
        pass
    answer = await fetched(prober, f"http://127.0.0.1:{port}/")
    assert (answer.trouble, answer.detail) == (Trouble.REFUSED, "the connection is refused")


async def test_nobody_takes_the_connection(prober: ChildProber) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        where = full.getsockname()
        with socket.create_connection(where), socket.socket() as waiting:  # they fill its queue
            waiting.setblocking(False)
            waiting.connect_ex(where)
            answer = await fetched(prober, f"http://127.0.0.1:{where[1]}/", 0.4)
    assert (answer.trouble, answer.detail) == (Trouble.TIMEOUT, "no connection came about within 0.4 s")


async def test_a_name_that_the_system_does_not_know(prober: ChildProber) -> None:
    answer = await fetched(prober, "http://no-such-host.invalid/")
    assert answer.trouble is Trouble.UNRESOLVED
    assert "cannot be resolved" in answer.detail


async def test_a_name_that_the_system_knows(prober: ChildProber) -> None:
    async with page_server(says(OK)) as port:
        assert (await fetched(prober, f"http://localhost:{port}/")).status == 200


async def test_a_url_that_cannot_be_fetched_says_nothing_about_its_host(prober: ChildProber) -> None:
    answer = await fetched(prober, "http://127.0.0.1:99999/")
    assert answer.trouble is Trouble.UNASKED
    assert "port" in answer.detail


@pytest.mark.parametrize(
    ("certificate", "host", "trouble", "words"),
    [
        ("good", "127.0.0.1", None, ""),
        ("good", "localhost", None, ""),
        ("expired", "127.0.0.1", Trouble.TLS_EXPIRED, "its certificate has expired"),
        ("stranger", "127.0.0.1", Trouble.TLS_UNTRUSTED, "not to be trusted: self-signed certificate"),
    ],
)
async def test_certificates(
    prober: ChildProber, certificate: str, host: str, trouble: Trouble | None, words: str
) -> None:
    async with page_server(says(OK), certificate) as port:
        answer = await fetched(prober, f"https://{host}:{port}/")
    assert answer.trouble is trouble
    assert words in answer.detail
    assert answer.status == (None if trouble else 200)


async def test_a_certificate_of_an_authority_that_nobody_knows(
    prober: ChildProber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    async with page_server(says(OK), "good") as port:
        answer = await fetched(prober, f"https://127.0.0.1:{port}/")
    assert answer.trouble is Trouble.TLS_UNTRUSTED
    assert "unable to get local issuer" in answer.detail


async def test_no_tls_where_some_is_expected(prober: ChildProber) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(OK)

    async with page_server(plain) as port:
        answer = await fetched(prober, f"https://127.0.0.1:{port}/")
    assert answer.trouble is Trouble.TLS
    async with page_server(stalls) as port:
        answer = await fetched(prober, f"https://127.0.0.1:{port}/", 0.4)
    words = "it took the connection, but agreed on no TLS within 0.4 s"
    assert (answer.trouble, answer.detail) == (Trouble.STALLED, words)


async def test_what_is_on_this_machine_is_asked_past_any_proxy(
    prober: ChildProber, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_server(says(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with page_server(says(OK)) as port:
            assert (await fetched(prober, f"http://127.0.0.1:{port}/")).status == 200
        assert (await fetched(prober, "http://one.example/")).status == 502


async def test_the_health_endpoints_of_gateways_are_asked_with_their_key_and_their_bodies_are_kept(
    monkeypatch: pytest.MonkeyPatch, prober: ChildProber
) -> None:
    monkeypatch.setenv("A_KEY", "sk-1234")
    async with gateway(LITELLM, "sk-1234") as url:
        asked = ProbeRequest("http", f"{url}/health", 5 * SECOND, keeps=True)
        refused, answer = await prober.ask(asked), await prober.ask(asked._replace(bearer="A_KEY"))
        plain = await prober.ask(asked._replace(target=f"{url}/health/liveliness", keeps=False))
    assert (refused.status, answer.status, json.loads(answer.body)) == (401, 200, LITELLM["/health"][1])
    assert (plain.status, plain.body) == (200, "")


@pytest.mark.parametrize(
    ("said", "certificate"),
    [
        (b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5_000 + b"0\r\n\r\n", ""),
        (b"HTTP/1.1 103 X\r\n\r\n" * 6_000 + OK, ""),
        (b"HTTP/1.1 103 X\r\n\r\n" * 6_000 + OK, "good"),
    ],
    ids=["pieces of a byte", "thousands of interim answers", "those over TLS"],
)
async def test_others_are_asked_while_a_server_answers_in_very_many_pieces(
    said: bytes, certificate: str
) -> None:
    turned, is_over = 0, False

    async def others() -> None:
        nonlocal turned
        while not is_over:
            turned += 1
            await asyncio.sleep(0)

    async with page_server(says(said), certificate) as port, asyncio.TaskGroup() as group:
        group.create_task(others())
        url = f"http{'s' if certificate else ''}://127.0.0.1:{port}/"
        asked = ProbeRequest("http", url, 30 * SECOND, local=True)
        assert (await fetch(asked, 30.0))[0] == 200
        is_over = True
    assert turned >= 5_000
