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
    snapshot TEXT,
    engine TEXT -- as in a TickRecord; a file of before it was there is given this column when it is opened
) STRICT;

CREATE INDEX IF NOT EXISTS tick_snapshot ON tick (snapshot) WHERE snapshot IS NOT NULL;

-- What older samples are rolled up to: one row for each number and minute. The names are kept apart from the
-- rows, of which there are many.
CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    field TEXT NOT NULL, -- path in the sample's data, parts joined by dots
    UNIQUE (key, field)
) STRICT;

CREATE TABLE IF NOT EXISTS minute (
    series INTEGER NOT NULL,
    minute INTEGER NOT NULL, -- since the epoch, UTC
    count INTEGER NOT NULL,
    low REAL NOT NULL,
    mean REAL, -- this and the next two: NULL where it is the same as low
    high REAL,
    last REAL,
    PRIMARY KEY (series, minute)
) STRICT, WITHOUT ROWID;
