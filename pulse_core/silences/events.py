"""What happens to silences."""

from pydantic import Field

from pulse_core.model.payload import Payload, Role, Text, Wake


class SilenceAdded(Payload, kind="silence-added", by=Role.PERSON, wakes=Wake.SOON):
    """A person wants effects held back for a while. Subject: what their keys look like (`*` and `?`)."""

    expires_us: int = Field(gt=0, description="for how long, microseconds")
    why: Text = ""


class SilenceRemoved(Payload, kind="silence-removed", by=Role.PERSON, wakes=Wake.NOW):
    """A silence is over before its time. Subject: the id of the event that added it."""
