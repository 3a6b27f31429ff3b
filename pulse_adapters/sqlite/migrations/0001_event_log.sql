CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    boot TEXT NOT NULL,
    mono INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    actor TEXT NOT NULL,
    host TEXT NOT NULL,
    cause TEXT,
    data TEXT, -- NULL only where a secret was redacted; data_sha256 and the chain stay
    data_sha256 BLOB NOT NULL,
    chain BLOB NOT NULL
) STRICT;

CREATE INDEX event_subject ON event (subject);

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TRIGGER event_never_changes BEFORE UPDATE ON event
BEGIN
    SELECT RAISE(ABORT, 'events are never changed: append a new one that says what is different');
END;

CREATE TRIGGER event_never_goes BEFORE DELETE ON event
BEGIN
    SELECT RAISE(ABORT, 'events are never deleted or replaced: the log only grows');
END;
