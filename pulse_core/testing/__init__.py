"""Tests for rules, in virtual time: given what happened, tick, and expect effects.

    from pulse_core.testing import given

    def test_a_dead_process_is_restarted() -> None:
        story = given(process_watchdog, settings={"process": [{"name": "gateway", "start": ["gateway"]}]})
        story.event(ProcessDied(pid=7, evidence="gone", healthy=True), "gateway")
        story.tick()
        story.expect("restart-process", key="restart-process:gateway")

The log, its projections, the onion and the unique keys are the daemon's own; only the clock, and whoever
carries out effects, are the test's. No daemon, disk, process or loop is needed, and nothing here sleeps.
"""

from pulse_core.testing.story import Story, given

__all__ = ["Story", "given"]
