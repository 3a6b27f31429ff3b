"""The engine from a person's side: gates, promotes, rollbacks, its history. The daemon alone changes what runs."""
