"""Where the heads of logs are written down outside of their homes, and read again: a file, the journal."""
