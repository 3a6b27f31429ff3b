"""Objects: immutable blobs in files named by their SHA-256; stored once and never rewritten."""
