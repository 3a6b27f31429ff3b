"""Reading the whole log of a home."""

from pulse_adapters.sqlite.backup.known_rows import last_checkpoint_row
from pulse_adapters.sqlite.verify import VerifyResult, verify
from pulse_core.home import HomeLayout


def verify_log(home: HomeLayout) -> VerifyResult:
    """How many rows are what was written, and what is wrong with the next."""
    return verify(home.events, home.objects, expect=last_checkpoint_row(home))
