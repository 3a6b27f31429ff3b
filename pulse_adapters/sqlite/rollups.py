"""Rolls older samples up to minutes before they go: in SQL, in small steps, so that nobody waits for it.

Imports nothing, for the command line's sake.
"""

MINUTE_US = 60_000_000

STEP = 500
"""Samples, or ticks, that are dealt with at a time, and the rest of the minute that the last of them is in."""

_FIELD = """substr(replace(tree.fullkey, '"', ''), 3)"""
_TREE = "json_tree(CASE WHEN json_valid(sample.data) THEN sample.data ELSE 'null' END) AS tree"
_SAMPLE = f"sample CROSS JOIN {_TREE}"
"""In this order, and with a `+` before the key: left to itself, SQLite looks through all samples, and through each of them
for each known name."""
_OLD = "sample.at < ? AND tree.type IN ('integer', 'real', 'true', 'false')"

OLDEST = f"SELECT max(at) FROM (SELECT at FROM sample WHERE at < ? ORDER BY at LIMIT {STEP})"
"""When the last of the oldest samples before a time was taken; NULL if there are none."""

ROLL_UP = (
    f"INSERT OR IGNORE INTO series (key, field) SELECT DISTINCT +sample.key, {_FIELD} FROM {_SAMPLE} WHERE {_OLD}",
    f"""
    WITH number AS MATERIALIZED (
        SELECT series.id AS series, sample.at / {MINUTE_US} AS minute, sample.id AS sample, tree.atom AS value
        FROM {_SAMPLE} CROSS JOIN series ON series.key = sample.key AND series.field = {_FIELD} WHERE {_OLD}
    ), newest AS (SELECT series, minute, value, max(sample) FROM number GROUP BY series, minute)
    INSERT OR IGNORE INTO minute
    SELECT series, minute, count(*), min(number.value), nullif(avg(number.value), min(number.value)),
        nullif(max(number.value), min(number.value)), nullif(newest.value, min(number.value))
    FROM number JOIN newest USING (series, minute) GROUP BY series, minute
    """,
    "DELETE FROM sample WHERE at < ?",
)
"""Rolls up the samples before a time, which is a minute's beginning, and forgets them: statements of one transaction.

A minute that is there already (the clock was set back by days) stays as it is.
"""

KEPT = 1_000
"""Ticks that emitted effects, and so have a snapshot, that are kept beyond their time, as long as minutes are."""

OLD_TICKS = f"""
    tick WHERE at < ? AND (snapshot IS NULL OR at < ? OR tick <= (
        SELECT tick FROM tick WHERE snapshot IS NOT NULL AND at < ? ORDER BY tick DESC LIMIT 1 OFFSET {KEPT}))
"""
"""Values: before when a tick is old, before when one with a snapshot is in any case, and the first again."""

TRIM_TICKS = f"DELETE FROM tick WHERE tick IN (SELECT tick FROM {OLD_TICKS} LIMIT {STEP})"
TRIM_MINUTES = f"""
    DELETE FROM minute WHERE (series, minute) IN (
        SELECT series, minute FROM series CROSS JOIN minute ON minute.series = series.id WHERE minute < ? LIMIT {STEP}
    )
"""
"""By series, whose minutes lie in order: so no others are looked at."""

TRIM_SERIES = "DELETE FROM series WHERE NOT EXISTS (SELECT 1 FROM minute WHERE minute.series = series.id)"
MINUTE_RANGES = """
    SELECT field, min(minute), min(low), sum(coalesce(mean, low) * count) / sum(count), max(coalesce(high, low))
    FROM series JOIN minute ON minute.series = series.id
    WHERE key = ? AND minute >= ? AND minute < ? GROUP BY series, minute / ? ORDER BY series, minute
"""
"""The minutes of a key, so many of them together."""

UNNAMED = """
    SELECT value FROM json_each(?)
    WHERE NOT EXISTS (SELECT 1 FROM tick WHERE tick.snapshot = json_each.value AND tick.at >= ?)
"""
"""Those of the given names that no record of a tick since that time names as its snapshot."""


def minute_start(at: int) -> int:
    """The beginning of the minute in which this moment lies, UTC microseconds."""
    return at // MINUTE_US * MINUTE_US
