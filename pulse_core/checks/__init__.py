"""Checks of settings, without code: a command, a page, a file, the lines of a log or a sensed number that must be well, and
what follows when it is not. They raise conditions as all watchers do; nothing is read here that another one reads already.
"""
