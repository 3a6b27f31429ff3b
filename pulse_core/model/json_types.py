"""JSON as a type."""

from typing import Any

Json = Any  # whatever the json module reads and writes; pydantic checks the shape where one is known
