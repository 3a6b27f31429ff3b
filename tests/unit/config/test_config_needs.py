"""What the doctor tells of what the settings need."""

from pulse_adapters.config.checks import NeedChecks


def test_of_refused_settings_nothing_is_told_that_they_would_need() -> None:
    needs = NeedChecks(lambda: None, lambda: None, lambda name, variables: None, lambda settings: {})
    assert not [*needs.extras(), *needs.environment(), *needs.addresses()]
