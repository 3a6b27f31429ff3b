"""The executor `notify`: logs a notice at once, and sends it to the outside addresses if there are any."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import ValidationError

from pulse_adapters.notify.addresses import address_names, delivery_faults, resolve_url
from pulse_adapters.notify.deliver import NOT_UNDERSTOOD
from pulse_adapters.workers.conversation import conversation
from pulse_adapters.workers.message_types import CutTo, Seq
from pulse_adapters.workers.worker import Program, module_program
from pulse_core.actions import NOTIFY, NoticeParams
from pulse_core.model.errors import PulseError
from pulse_core.model.event import Event
from pulse_core.model.json_types import Json
from pulse_core.model.kinds import Effect, SettingsLoaded
from pulse_core.model.moment import US_PER_SECOND, Moment, local_text
from pulse_core.model.names import NOTICE_SEVERITIES, TRIAL_NOTICE
from pulse_core.model.text import clean, count
from pulse_core.ports.clock import Clock
from pulse_core.ports.executor import Executor, GivenUp, PartlyDone, Policy, Result, Safety
from pulse_core.ports.transport import OutgoingMessage, Tone, Transport, UnusableAddress
from pulse_core.projections.effects import decode_plain_effect
from pulse_core.projections.notices import PREFIX, Notices, ReplacedNotices
from pulse_core.projections.state import State
from pulse_core.settings.secrets import mask_secret
from pulse_core.settings.settings import Settings

PATIENCE_S = 60.0
LEVELS = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
TONES: Mapping[str, Tone] = {"info": "info", "warning": "warning", "error": "failure", "critical": "failure"}
UNWATCHED = "warning"
"""How severe it is that something is not watched any more, whatever it was."""
DELIVER = "pulse_adapters.notify.deliver"


class Delivered(NamedTuple):
    """The child's report on the message of this number: why it did not arrive, or empty, and whether no other could."""

    number: Seq
    why: Annotated[str, CutTo(500)]
    is_unusable: bool = False


class ChildTransport:
    """Implements `pulse_core.ports.Transport`; patience: seconds until a child that is not done is killed."""

    def __init__(self, patience: float = PATIENCE_S, program: Program | None = None) -> None:
        self._patience, self._program = patience, program

    async def deliver(self, letters: Sequence[OutgoingMessage]) -> Sequence[str]:
        """Why each message did not arrive, or empty; also right for those that arrived before a child died."""
        if not letters:
            return ()
        answers: dict[int, str] = {}
        # It ends itself a little later, should the daemon be gone.
        order = {"seconds": round(self._patience) + 5, "letters": [letter._asdict() for letter in letters]}
        program = self._program or module_program(DELIVER)
        try:
            async with conversation(program, Delivered) as child, asyncio.timeout(self._patience):
                child.tell(order)
                while said := await child.next():
                    answers[said.number] = UnusableAddress(said.why) if said.is_unusable else said.why
                why = f"what delivers it {await child.end()}"
        except TimeoutError:
            why = f"no answer within {self._patience:g} s"
        except OSError as error:
            why = f"what delivers it cannot be started ({error.strerror})"
        return [answers.get(number, why) for number in range(len(letters))]


KEPT_US = 7 * 86_400 * US_PER_SECOND
"""For how long a notice is retried."""

LONGEST_S = 90.0
AGAIN_S, AGAIN_MAX_S = 120.0, 4 * 3_600.0
"""Twelve attempts on the first day, six on each further one: two rows of the log each."""
OVERDUE_S = 2 * (AGAIN_S + LONGEST_S)
"""An address that failed so long ago had a retry since, unless newer notices took the place of those that failed."""

ATTEMPTS = 10_000
"""More than there can be in that time: a notice is given up for its age, not for the number of its attempts."""

REMEMBERED = 5_000

LATE_US = 5 * US_PER_SECOND
"""From this age on a notice is said to be late, and so is one of an earlier daemon: it may tell of what is past by now."""

TITLE, ENTRY, ALONE = 250, 400, 4_000
"""Characters of a title, of a notice in a list, and of one by itself; `upulse effect show` has the rest."""


class RecordedNotice(NamedTuple):
    """A recorded notice: its row, when it was requested (UTC microseconds), and its content.

    addresses: where it goes, each with words about the earlier notices that it replaces there; left_out: these words, once
    it is in the message to one of them.
    """

    seq: int
    at: int
    said: NoticeParams
    addresses: Mapping[str, str] = {}
    left_out: str = ""


Answers = Mapping[str, str]
"""Why each address did not take what was sent to it, or empty if it did."""
Send = Callable[[Sequence[RecordedNotice]], Awaitable[Answers]]
"""Sends notices, oldest first."""
NOT_TRIED = "it did not take the last message, so it is tried by itself"


class Notify(Executor):
    """Sends notices that begin together as one message; one that reached some addresses is sent to the others only.

    A new notice goes to the addresses that took the last message, or have not been tried for long, and to all only if there
    is none of these: it does not wait for an address that does not answer. The next attempt, with others that failed, tries
    those that it lacks.

    view: returns the projections, which say which addresses an open notice has reached, whichever daemon sent it.
    `log_notices` is a listener of the log: it logs each notice as soon as it is recorded, however long that waits to be
    sent. failed(source, message) is called for settings that prevent sending, and for notices that are given up.
    """

    action, params = NOTIFY.name, NoticeParams

    def __init__(
        self,
        settings: Callable[[], Settings],
        transport: Transport,
        clock: Clock,
        failed: Callable[[str, str], None] = lambda whose, message: None,
        environment: Mapping[str, str] = os.environ,
        logger: logging.Logger | None = None,
        view: Callable[[], State] = State,
    ) -> None:
        self._settings, self._transport, self._clock = settings, transport, clock
        self._failed, self._environment, self._view = failed, environment, view
        self._logger = logger or logging.getLogger("pulse.notice")
        self._host, self._began = os.uname().nodename, clock.now().at
        self._said: dict[str, None] = {}
        self._failing: dict[str, tuple[Moment, Moment]] = {}
        """The addresses that did not take the last message: since when, and when one was sent to them last."""
        self._faults: Sequence[str] = ()
        self._strange: set[str] = set()
        """The addresses that Apprise does not understand."""
        self._unusable: dict[str, str] = {}
        """Why no notice can go to an address that was tried, by address."""
        self._messages: dict[bool, PendingMessage] = {}
        """The messages that are being made: of new notices, and of those that were tried before."""

    def policy(self, params: NoticeParams) -> Policy:
        """At least once; to outside addresses retried for days, at growing intervals."""
        if not self._settings().notice_urls:
            return Policy(Safety.IDEMPOTENT, timeout=5.0)
        return Policy(
            Safety.IDEMPOTENT, timeout=LONGEST_S, retries=ATTEMPTS, backoff=AGAIN_S, backoff_max=AGAIN_MAX_S
        )

    def log_notices(self, events: Sequence[Event]) -> None:
        """Log new notices, and report what is wrong with new settings; a listener of the log."""
        for event in events:
            if event.kind == SettingsLoaded.kind:
                self._strange.clear()
                self._unusable.clear()
                self._report_faults()
            elif event.kind == Effect.kind and decode_plain_effect(event.data).get("action") == self.action:
                with suppress(ValidationError):  # of another version; its executor says what is wrong with it
                    params = decode_plain_effect(event.data).get("params", {})
                    self._say(event.id, NoticeParams.model_validate(params))

    def _say(self, id_: str, said: NoticeParams) -> None:
        if id_ not in self._said:
            self._logger.log(logging.INFO if said.over else LEVELS[said.severity], "%s", one_line(said))
        self._said[id_] = None
        if len(self._said) > REMEMBERED:
            del self._said[next(iter(self._said))]

    async def execute(self, effect: Effect, params: NoticeParams, event: Event) -> Result:
        """Log it, if that was not done, and send it to the addresses that it has not reached."""
        self._say(event.id, params)
        settings, state = self._settings(), self._view()
        addresses = self._addresses(params.severity, effect.key.removeprefix(PREFIX), state.notices)
        if not addresses:
            self._said.pop(event.id, None)
            why = "no route takes it" if settings.notice_urls else "[notify] has no urls"
            return Result({"only": f"logged: {why}"})
        names = address_names(settings.notice_urls)
        before = state.notices.sent_to.get(event.id, ())
        due = {address: left_out for address, left_out in addresses.items() if names[address] not in before}
        one = state.effects.open.get(event.id)
        is_repeated = effect.key == TRIAL_NOTICE or (one is not None and one.attempt > 1)
        message = self._messages.get(is_repeated)
        if message is None or message.closed:
            message = self._messages[is_repeated] = PendingMessage(partial(self._send, is_repeated))
        answers = await message.take(RecordedNotice(event.seq, event.at, params, due))
        reached = [names[address] for address in due if not answers[address]]
        wrong = {address: answers[address] for address in due if answers[address]}
        if wrong:
            error = "; ".join(f"{names[address]}: {why}" for address, why in wrong.items())
            raise self._failure(effect, event, error, {"sent_to": reached} if reached else {}, wrong)
        self._said.pop(event.id, None)
        return Result({"sent_to": [*before, *reached]})

    def _addresses(self, severity: str, topic: str, notices: Notices) -> Mapping[str, str]:
        """The addresses of a notice, and what is said there of those that it took the place of.

        An address that lacks one of these is sent the newest one, whatever its severity.
        """
        settings, replaced = self._settings(), notices.replaced.get(topic, ReplacedNotices())
        now = settings.notice_urls_for(severity, topic)
        names, found = address_names(settings.notice_urls), dict[str, str]()
        for address in settings.notice_urls:
            meant = sum(
                replaced.by_severity.get(one, 0)
                for one in NOTICE_SEVERITIES
                if address in settings.notice_urls_for(one, topic)
            )
            left_out = meant - (got := replaced.by_address.get(names[address], 0))
            if left_out > 0 or address in now:
                first = 0 if got else replaced.first
                found[address] = left_out_words(left_out, first, replaced.interrupted)
        return found

    def _failure(
        self, effect: Effect, event: Event, error: str, result: Mapping[str, Json], wrong: Collection[str]
    ) -> PulseError:
        if self._strange >= set(wrong):  # all that a service knows were reached
            why = "no other attempt would do better"
        elif self._clock.now().since(event.moment) < KEPT_US:
            return PartlyDone(error, result)
        else:
            why = "given up after 7 days"
            self._failed("notify", f"the notice {effect.key!r} is {why}: {error}")
        self._said.pop(event.id, None)
        return GivenUp(f"{error}; {why}", result)

    async def _send(self, is_repeated: bool, notices: Sequence[RecordedNotice]) -> Answers:
        """Send to each address the notices that it lacks."""
        self._report_faults()
        addresses = {address for notice in notices for address in notice.addresses}
        urls = {one: resolve_url(one, self._environment) for one in self._settings().notice_urls}
        tried = [one for one, url in urls.items() if one in addresses and url]
        if not is_repeated:
            tried = [one for one in tried if self._is_due(one)] or tried
        now, messages = self._clock.now().at, []
        for one in tried:
            due = [
                notice._replace(left_out=notice.addresses[one])
                for notice in notices
                if one in notice.addresses
            ]
            messages.append(compose_message(urls[one], due, self._host, now, self._began))
        answers = dict(zip(tried, await self._transport.deliver(messages), strict=True))
        for address, error in answers.items():
            if not error:
                self._failing.pop(address, None)
            elif error != NOT_UNDERSTOOD:
                ended = self._clock.now()
                self._failing[address] = (self._failing.get(address, (ended, ended))[0], ended)
            else:
                self._strange.add(address)
            self._note_unusable(address, error)
        unset = "its variable is not set"
        return {one: answers.get(one, NOT_TRIED if urls.get(one) else unset) for one in addresses}

    def _is_due(self, address: str) -> bool:
        """Whether a new notice may go there: it takes messages, or its retry is overdue, which may hold this one up."""
        if address not in self._failing:
            return True
        since, last = self._failing[address]
        pause = min(max(last.since(since), OVERDUE_S * US_PER_SECOND), AGAIN_MAX_S * US_PER_SECOND)
        return self._clock.now().since(last) >= pause

    def _note_unusable(self, address: str, error: str) -> None:
        """Remember and report once why nothing can go to this address, however often it is tried."""
        if not isinstance(error, UnusableAddress):
            self._unusable.pop(address, None)
        elif address not in self._unusable:
            advice = "; see upulse config check" if error == NOT_UNDERSTOOD else ""
            self._unusable[address] = f"no notices go to {mask_secret(address)}: {error}{advice}"
            self._failed("notify", self._unusable[address])

    def faults(self) -> Sequence[str]:
        """Why addresses can take no notice, a sentence each: for what is missing, or as the last try has shown."""
        return [*delivery_faults(self._settings(), self._environment), *self._unusable.values()]

    def _report_faults(self) -> None:
        """Report each fault of the settings once, until it is over."""
        now = delivery_faults(self._settings(), self._environment)
        for fault in now:
            if fault not in self._faults:
                self._failed("notify", fault)
        self._faults = now


class PendingMessage:
    """Collects notices for one turn of the event loop, then sends them; cancelled when no effect waits any more.

    Needs a running loop.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._notices: list[RecordedNotice] = []
        self._waiting = 0
        self.closed = False
        self._sending = asyncio.create_task(self._sent(), name="message to people")

    async def _sent(self) -> Answers:
        await asyncio.sleep(0)
        self.closed = True
        return await self._send(sorted(self._notices, key=lambda notice: notice.seq))

    async def take(self, notice: RecordedNotice) -> Answers:
        """Send this notice with the others."""
        self._notices.append(notice)
        self._waiting += 1
        try:
            return await asyncio.shield(self._sending)
        finally:
            self._waiting -= 1
            if not self._waiting and not self._sending.done():
                self.closed = True
                self._sending.cancel()
                await asyncio.wait([self._sending])


def compose_message(
    url: str, notices: Sequence[RecordedNotice], host: str, now: int, began: int = 0
) -> OutgoingMessage:
    """The notices as one message (at least one; oldest first).

    host: the machine's name; now, and when this daemon began: UTC microseconds.
    """
    tone = tone_of([notice.said for notice in notices])
    late = [notice for notice in notices if notice.at < max(began, now - LATE_US)]
    doubt = ", and may be over." if any(not notice.said.over for notice in late) else "."
    if len(notices) > 1:
        waited = f"{len(late)} of them waited to be sent{doubt}"
        entries = []
        for notice in notices:
            said = notice.said
            title = truncate(said.title, TITLE)
            text = f"{title}: {said.text}" if said.text else said.title
            left_out = f" ({notice.left_out})" if notice.left_out else ""
            entries.append(f"{local_text(notice.at)}  {truncate(text, ENTRY)}{left_out}")
        body = "\n\n".join([waited, *entries] if late else entries)
        return OutgoingMessage(url, f"{len(notices)} notices from {host}", body, tone)
    (notice,) = notices
    body = truncate(notice.said.text or notice.said.title, ALONE)
    when = f"It is of {local_text(notice.at)}{doubt}" if late else ""
    left_out = f"{notice.left_out}." if notice.left_out else ""
    body = "\n\n".join(filter(None, [when, body, left_out]))
    return OutgoingMessage(url, f"{truncate(notice.said.title, TITLE)} ({host})", body, tone)


def left_out_words(left_out: int, first: int, interrupted: bool) -> str:
    """How many earlier notices were left out, in words; empty if none was. first: when the first one was requested, if
    that was left out; interrupted: whether one of them was being sent, so that nobody knows whether it arrived."""
    if left_out <= 0:
        return ""
    since = f" since {local_text(first)}" if first else ""
    words = (
        f"{count(left_out, 'earlier notice')} of this{since} {'was' if left_out == 1 else 'were'} left out"
    )
    return f"{words} or interrupted" if interrupted else words


def tone_of(notices: Sequence[NoticeParams]) -> Tone:
    """That of the worst notice; success if all say that something is over, and not that nobody looks at it any more."""
    news = [
        UNWATCHED if said.unwatched else said.severity for said in notices if said.unwatched or not said.over
    ]
    if not news:
        return "success"
    return TONES[max(news, key=NOTICE_SEVERITIES.index)]


def truncate(text: str, most: int) -> str:
    """The text without what acts on a terminal, cut if it is longer than this."""
    text = clean(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(said: NoticeParams) -> str:
    """Title and text on one line: no line breaks, so that it can't pass for two, and no control characters."""
    words = ": ".join(part for part in (said.title, said.text) if part)
    return "".join(char if char.isprintable() else "?" for char in " ".join(words.split()))
