"""What is looked for elsewhere after a redaction: what was said, and no word that is found everywhere."""

from pulse_core.app.redact import texts_of
from pulse_core.model.kinds import ConditionRaised, Effect
from tests.events import event


def test_words_of_pulses_own_are_not_looked_for() -> None:
    raised = ConditionRaised(evidence="it printed the word sesame", state="failing")
    wish = Effect(
        action="notify", key="notify:x", params={"action": "in secret"}, reason="sesame", rule="tell_people"
    )
    rows = [event(1, raised, "check:page"), event(2, wish, wish.key)]
    assert texts_of(rows) == {"it printed the word sesame", "notify:x", "in secret", "sesame"}
