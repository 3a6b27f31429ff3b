CREATE TABLE IF NOT EXISTS checkpoint (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    chain BLOB NOT NULL,
    state TEXT NOT NULL,
    digest BLOB NOT NULL -- SHA-256 of all the rest
) STRICT;
