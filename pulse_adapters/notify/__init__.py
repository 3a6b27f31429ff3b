"""Telling people: a notice is said where somebody reads it. Nothing here decides what is worth saying."""
