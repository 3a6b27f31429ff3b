"""What a rule host says is believed only after it was checked."""

from typing import Any

import pytest

from pulse_adapters.rule_host.replies import HistoryReply, LoadReply
from pulse_adapters.workers.framing import WorkerFault
from pulse_adapters.workers.messages import decode


@pytest.mark.parametrize("wanted", [5, "promote", {"promote": 1}, [5]])
def test_kinds_that_are_no_list_of_texts_are_refused(wanted: Any) -> None:
    with pytest.raises(WorkerFault, match=r"valid (frozenset|string)"):
        decode(LoadReply, {"projections": {"own": ["1", wanted]}})


@pytest.mark.parametrize("seq", [2**70, -1, 1.5, "one"])
def test_a_row_that_no_log_has_is_refused(seq: Any) -> None:
    with pytest.raises(WorkerFault, match="kept"):
        decode(HistoryReply, {"kept": ["1", seq, "{}"]})
