CREATE TABLE IF NOT EXISTS checkpoint (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    chain BLOB NOT NULL,
    state TEXT NOT NULL,
    digest BLOB NOT NULL -- SHA-256 of all the rest
) STRICT;

CREATE TABLE IF NOT EXISTS log (
    host TEXT PRIMARY KEY -- the id of the home whose log the checkpoints are of
) STRICT;
