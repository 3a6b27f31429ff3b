CREATE TABLE IF NOT EXISTS sample (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    boot TEXT NOT NULL,
    mono INTEGER NOT NULL,
    data TEXT NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS sample_key ON sample (key);
CREATE INDEX IF NOT EXISTS sample_at ON sample (at);

CREATE TABLE IF NOT EXISTS tick (
    tick INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    boot TEXT NOT NULL,
    mono INTEGER NOT NULL,
    woken_by TEXT NOT NULL,
    seq INTEGER NOT NULL,
    chain TEXT NOT NULL, -- hex
    samples TEXT NOT NULL, -- JSON array of ids
    settings TEXT NOT NULL,
    version TEXT NOT NULL,
    layers TEXT NOT NULL, -- JSON array of [rule, outcome, [notes], took_us]
    effects TEXT NOT NULL, -- JSON array of ids
    tick_ms INTEGER NOT NULL,
    took_us INTEGER NOT NULL,
    snapshot TEXT
) STRICT;
