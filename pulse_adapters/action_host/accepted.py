"""What a model takes, as a schema: where the author's own code has the first look, that is anything."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema


class AcceptedInput(GenerateJsonSchema):
    """Tells nothing of what a validator may have changed before the types are looked at."""

    def function_before_schema(self, schema: Any) -> dict[str, Any]:
        """A validator sees it first."""
        return {}

    def function_wrap_schema(self, schema: Any) -> dict[str, Any]:
        """A validator sees it first, and last."""
        return {}

    def function_plain_schema(self, schema: Any) -> dict[str, Any]:
        """Only a validator sees it."""
        return {}
