"""Files that Pulse may delete or put away: only under roots that a person has named, and never through a link.

The work is done by children that can be killed, since a file server may never answer; they know only the standard
library, take their orders as JSON, and answer with one line of it.
"""
