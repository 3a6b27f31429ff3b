-- The one change of a row: its data is emptied, by an `event-redacted` after it that has the hash of what was there.
DROP TRIGGER event_never_changes;

CREATE TRIGGER event_never_changes BEFORE UPDATE ON event
WHEN NEW.data IS NOT NULL
    OR (NEW.seq, NEW.id, NEW.at, NEW.boot, NEW.mono, NEW.kind, NEW.subject, NEW.actor, NEW.host, NEW.cause, NEW.data_sha256, NEW.chain)
        IS NOT
       (OLD.seq, OLD.id, OLD.at, OLD.boot, OLD.mono, OLD.kind, OLD.subject, OLD.actor, OLD.host, OLD.cause, OLD.data_sha256, OLD.chain)
    OR NOT EXISTS (
        SELECT 1 FROM event AS said
        WHERE said.subject = OLD.id AND said.kind = 'event-redacted' AND said.seq > OLD.seq
            AND json_extract(said.data, '$.sha256') = lower(hex(OLD.data_sha256))
    )
BEGIN
    SELECT RAISE(ABORT, 'events are never changed: append a new one that says what is different');
END;

-- INSERT OR REPLACE deletes without asking the trigger of deletes, unless its connection has recursive_triggers on.
CREATE TRIGGER event_only_at_the_end BEFORE INSERT ON event
WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM event)
    OR EXISTS (SELECT 1 FROM event WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'events are never replaced: the log only grows, at its end');
END;
