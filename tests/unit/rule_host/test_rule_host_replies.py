"""What a rule host says is believed only after it was checked."""

from typing import Any

import pytest

from pulse_adapters.rule_host.replies import kept_value_of, kinds_of


@pytest.mark.parametrize("wanted", [5, "promote", {"promote": 1}, [5]])
def test_kinds_that_are_no_list_of_texts_are_refused(wanted: Any) -> None:
    with pytest.raises(ValueError, match=r"no list|a text"):
        kinds_of({"projections": {"own": ["1", wanted]}})


@pytest.mark.parametrize("seq", [2**70, -(2**70), True, 1.0, "1"])
def test_a_row_that_no_log_has_is_refused(seq: Any) -> None:
    with pytest.raises(ValueError, match="a number"):
        kept_value_of({"kept": ["1", seq, "{}"]})
