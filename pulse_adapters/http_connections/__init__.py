"""Bounds the connections of an HTTP server, in number, time and memory. Nothing here knows what is served."""
