"""Types of what workers say that need more than Python's own; a command that begins a worker does without them till then."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

Seq = Annotated[int, Interval(ge=0, lt=2**63)]
"""A place in the log, or a count."""


@dataclass(frozen=True)
class CutTo:
    """Of a text in `Annotated`: cut it after so many characters."""

    most: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: "Callable[[Any], CoreSchema]"
    ) -> "CoreSchema":
        """How pydantic does that."""
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(lambda text: text[: self.most], handler(source))
