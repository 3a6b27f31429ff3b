"""Messages leave through a child process for each batch, which speaks to people's services and can be killed."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pulse_adapters.workers.conversation import conversation
from pulse_adapters.workers.messages import CutTo, Seq
from pulse_adapters.workers.worker import Program, module_program
from pulse_core.ports import OutgoingMessage

PATIENCE_S = 60.0
DELIVER = "pulse_adapters.notify.deliver"


class Delivered(NamedTuple):
    """What the child says of the message of this number: why it did not arrive, or nothing."""

    number: Seq
    why: Annotated[str, CutTo(500)]


class ChildTransport:
    """Implements `pulse_core.ports.Transport`; patience: seconds until a child that is not done is killed."""

    def __init__(self, patience: float = PATIENCE_S, program: Program | None = None) -> None:
        self._patience, self._program = patience, program

    async def deliver(self, letters: Sequence[OutgoingMessage]) -> Sequence[str]:
        """Why each letter did not arrive, or nothing; those that arrived before a child died are known."""
        if not letters:
            return ()
        answers: dict[int, str] = {}
        try:
            why = await self._delivered(letters, answers)
        except TimeoutError:
            why = f"no answer within {self._patience:g} s"
        except OSError as error:
            why = f"what delivers it cannot be started ({error.strerror})"
        return [answers.get(number, why) for number in range(len(letters))]

    async def _delivered(self, letters: Sequence[OutgoingMessage], answers: dict[int, str]) -> str:
        """Tell the child what to do and take its answers as they come; what is to be said of those that don't.

        It is told when to end itself if nobody is left to end it.
        """
        program = self._program or module_program(DELIVER)
        order = {"seconds": round(self._patience) + 5, "letters": [letter._asdict() for letter in letters]}
        async with conversation(program, Delivered) as child, asyncio.timeout(self._patience):
            child.tell(order)
            while said := await child.next():
                answers[said.number] = said.why
            return f"what delivers it {await child.end()}"
