"""Delivers each batch of messages in a child process, which talks to the services and can be killed."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pulse_adapters.workers.conversation import conversation
from pulse_adapters.workers.messages import CutTo, Seq
from pulse_adapters.workers.worker import Program, module_program
from pulse_core.ports.transport import OutgoingMessage

PATIENCE_S = 60.0
DELIVER = "pulse_adapters.notify.deliver"


class Delivered(NamedTuple):
    """The child's report on the message of this number: why it did not arrive, or empty."""

    number: Seq
    why: Annotated[str, CutTo(500)]


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
                    answers[said.number] = said.why
                why = f"what delivers it {await child.end()}"
        except TimeoutError:
            why = f"no answer within {self._patience:g} s"
        except OSError as error:
            why = f"what delivers it cannot be started ({error.strerror})"
        return [answers.get(number, why) for number in range(len(letters))]
