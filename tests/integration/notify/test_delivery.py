"""Messages on their real way: a child process, Apprise, and an HTTP server that may behave badly."""

import asyncio
import logging
import os
import resource
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import psutil
import pytest

from pulse_adapters.host.clock import SystemClock
from pulse_adapters.notify.executor import DELIVER, ChildTransport, Delivered, Notify
from pulse_adapters.workers.conversation import conversation
from pulse_adapters.workers.environment import inherited_environment
from pulse_adapters.workers.worker import Program, module_program
from pulse_core.actions import NoticeParams
from pulse_core.model.event import Event
from pulse_core.model.kinds import Effect
from pulse_core.ports.executor import PartlyDone
from pulse_core.ports.transport import OutgoingMessage, Tone, UnusableAddress
from pulse_core.projections.notices import Notices
from pulse_core.projections.state import State
from pulse_core.settings.settings import Settings
from tests.postbox import Postbox, accept, bomb, drip, fail, flood, hang_up, moves, postbox

SECRET = "t0ps3cr3t-token"


@pytest.fixture
def box() -> Iterator[Postbox]:
    with postbox() as made:
        yield made


def children() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if DELIVER in words(one)]


def words(one: psutil.Process) -> list[str]:
    """Its command line; none if it has died and nobody has reaped it yet."""
    try:
        return one.cmdline()
    except psutil.NoSuchProcess:
        return []


def to(box: Postbox, path: str = "", title: str = "t", tone: Tone = "warning") -> OutgoingMessage:
    return OutgoingMessage(box.url(path), title, "the body\nin two lines", tone)


async def test_a_message_arrives_as_it_was_written(box: Postbox) -> None:
    bad, good = (
        to(box, title="gateway stays down", tone="failure"),
        to(box, title="resolved: gateway", tone="success"),
    )
    assert await ChildTransport().deliver([bad]) == [""]
    assert await ChildTransport().deliver([good]) == [""]
    (_, first), (_, second) = box.posts
    assert (first["title"], first["message"], first["type"]) == (
        "gateway stays down", "the body\nin two lines", "failure",
    )  # fmt: skip
    assert (second["title"], second["type"]) == ("resolved: gateway", "success")
    assert children() == []


async def test_it_arrives_where_the_directory_in_which_the_daemon_was_started_is_gone(
    box: Postbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert await ChildTransport().deliver([to(box)]) == [""]


async def test_each_address_fails_for_itself_and_says_why(box: Postbox) -> None:
    box.manners |= {"fails": fail, "hangs-up": hang_up}
    letters = [to(box, path) for path in ("fails", "good", "hangs-up")]
    nobody = OutgoingMessage("json://127.0.0.1:1/", "t", "b")
    odd = OutgoingMessage(f"nosuchservice://{SECRET}", "t", "b")
    failed, arrived, died, refused, unknown = await ChildTransport().deliver([*letters, nobody, odd])
    assert "500" in failed
    assert arrived == ""
    assert all(why for why in (died, refused))
    assert unknown == "Apprise does not understand this URL"
    assert [isinstance(one, UnusableAddress) for one in (failed, refused, unknown)] == [False, False, True]


async def test_what_is_moved_has_arrived_only_where_it_was_sent_again_or_said_to_be_taken(
    box: Postbox,
) -> None:
    box.manners |= {str(status): partial(moves, status=status) for status in (301, 302, 303, 307, 308)}
    answers = await ChildTransport().deliver([to(box, path) for path in box.manners])
    assert ["301" in answers[0], "302" in answers[1], *answers[2:]] == [True, True, "", "", ""]
    assert {path for path, _ in box.posts} == {*box.manners, "moved-by-307", "moved-by-308"}


@pytest.mark.wall_clock
async def test_who_never_ends_answering_is_given_up_and_the_others_are_known(box: Postbox) -> None:
    box.manners["drips"] = drip
    answers = await ChildTransport(patience=8.0).deliver([to(box, "drips"), to(box, "good")])
    assert answers == ["no answer within 8 s", ""]
    assert children() == []


async def test_an_answer_without_end_or_that_unpacks_to_gigabytes_is_cut_off_and_its_status_holds(
    box: Postbox,
) -> None:
    looked = threading.Event()

    def accept_once_looked(handler: BaseHTTPRequestHandler) -> None:
        """Accept, so that the child lives until then."""
        looked.wait(60)
        accept(handler)

    box.manners |= {"floods": flood, "bombs": bomb, "waits": accept_once_looked}
    waits = OutgoingMessage(box.url("waits").replace("rto=2", "rto=60"), "t", "b")
    letters = [to(box, "floods"), to(box, "bombs"), waits]
    sending = asyncio.create_task(ChildTransport(patience=30.0).deliver(letters))
    await asyncio.to_thread(box.came.wait, 60)
    (child,) = children()
    assert 0 < resource.prlimit(child.pid, resource.RLIMIT_DATA)[1] < 1 << 30
    looked.set()
    assert await sending == ["", "", ""]


async def test_a_child_that_is_killed_on_the_way_is_an_answer_too(box: Postbox) -> None:
    box.manners["drips"] = drip
    sending = asyncio.create_task(ChildTransport().deliver([to(box, "drips")]))
    await asyncio.to_thread(box.came.wait, 60)
    (child,) = children()
    child.kill()
    assert await sending == ["what delivers it was ended by SIGKILL"]


async def test_who_calls_it_back_ends_it(box: Postbox) -> None:
    box.manners["drips"] = drip
    sending = asyncio.create_task(ChildTransport().deliver([to(box, "drips")]))
    await asyncio.to_thread(box.came.wait, 60)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert children() == []


CHILD = "import os, time\nfrom pulse_adapters.workers import child_side\nchild_side.begin()\nnext(child_side.requests())\n"
HALF = 'child_side.send({"number": 0, "why": ""})\nprint("oh", flush=True)\nos._exit(3)'
ENDLESS = 'os.write(3, b"x" * 10**6)\ntime.sleep(9876)'
FORGED = 'child_side.send({"number": "zero", "why": ""})\ntime.sleep(9876)'


def python(code: str) -> Program:
    return Program((sys.executable, "-c", CHILD + code), inherited_environment())


@pytest.mark.parametrize(
    ("program", "answers"),
    [
        (python(HALF), ["", "what delivers it ended with status 3: oh"]),
        (
            python(ENDLESS),
            ["what delivers it said a message of 2,021,161,080 bytes; at most 1,048,576 are taken"] * 2,
        ),
        (
            python(FORGED),
            ["what delivers it said number: Input should be a valid integer"] * 2,
        ),
        (Program(("/bin/true",), {}), ["what delivers it ended with status 0"] * 2),
        (
            Program(("/no/such/program",), {}),
            ["what delivers it cannot be started (No such file or directory)"] * 2,
        ),
    ],
)
async def test_whatever_the_child_does_each_letter_has_its_answer(
    program: Program, answers: list[str]
) -> None:
    letters = [OutgoingMessage("json://127.0.0.1:1/", "t" * 100_000, "b")] * 2
    assert await ChildTransport(program=program).deliver(letters) == answers


async def test_a_child_whose_daemon_is_gone_ends_itself(box: Postbox) -> None:
    box.manners["drips"] = drip
    order = {"seconds": 3, "letters": [to(box, "drips")._asdict()]}
    async with conversation(module_program(DELIVER), Delivered) as child:
        child.tell(order)
        assert await child.next() is None
        assert await child.end() == "was ended by SIGALRM"


async def test_no_secret_is_told(box: Postbox) -> None:
    letter = OutgoingMessage(f"json://user:{SECRET}@127.0.0.1:1/{SECRET}x/?token={SECRET}", "t", "b")
    (why,) = await ChildTransport().deliver([letter])
    assert why
    assert SECRET not in why


async def test_no_secret_stands_in_a_command_line(box: Postbox) -> None:
    box.manners[SECRET] = drip
    sending = asyncio.create_task(ChildTransport().deliver([to(box, SECRET)]))
    await asyncio.to_thread(box.came.wait, 60)
    assert not [one for one in children() if SECRET in " ".join(one.cmdline())]
    sending.cancel()
    await asyncio.wait([sending])


async def test_without_apprise_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "apprise.py").write_text("raise ImportError")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    code += "from pulse_adapters.notify.deliver import main; main()"
    program = Program((sys.executable, "-c", code), inherited_environment())
    (why,) = await ChildTransport(program=program).deliver([OutgoingMessage("json://127.0.0.1:1/", "t", "b")])
    assert why.endswith("install it with: pip install 'upulse[notify]'")


async def test_what_a_service_cannot_take_at_once_is_split_and_not_lost(box: Postbox) -> None:
    body = "\n".join(f"line {number} of a long story" for number in range(3_000))
    assert await ChildTransport().deliver([OutgoingMessage(box.url(), "t", body)]) == [""]
    assert "line 2999 of" in "".join(post["message"] for _, post in box.posts)


async def test_the_executor_sends_what_is_begun_together_and_retries_what_is_missing(
    box: Postbox, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings.model_validate({"notify": {"urls": ["env:ONE", box.url("two")]}})
    box.manners["two"] = fail
    clock = SystemClock()
    environment = {**os.environ, "ONE": box.url("one")}
    state = State()
    notify = Notify(lambda: settings, ChildTransport(), clock, environment=environment, view=lambda: state)

    async def carry_out(number: int) -> PartlyDone | None:
        params = {"title": f"n{number}", "text": "words"}
        effect = Effect(action="notify", key=f"n{number}", params=params)
        event = Event(number, f"id-{number}", *clock.now(), "effect", effect.key, "", "", None, "")
        try:
            await notify.execute(effect, NoticeParams(**params), event)
        except PartlyDone as error:
            return error
        return None

    with caplog.at_level(logging.WARNING, "pulse.notice"):
        errors = await asyncio.gather(*(carry_out(number) for number in range(3)))
    assert all("json://***: " in str(error) and "500" in str(error) for error in errors)
    assert [path for path, _ in box.posts] in (["one", "two"], ["two", "one"])
    assert all(title.startswith("3 notices from ") for title in box.titles)
    assert [error and error.result for error in errors] == [{"sent_to": ["env:ONE"]}] * 3
    state = State(notices=Notices(sent_to={f"id-{number}": ("env:ONE",) for number in range(3)}))
    box.manners.clear()
    box.posts.clear()
    assert await asyncio.gather(*(carry_out(number) for number in range(3))) == [None] * 3
    assert [path for path, _ in box.posts] == ["two"]
    assert [record.getMessage() for record in caplog.records] == ["n0: words", "n1: words", "n2: words"]
