"""Deletes and archives files: only under roots that the settings name, and never through a link.

The work is done by children that can be killed, since a file server may never answer; they import only the standard
library, take one order as JSON, and answer with one.
"""
