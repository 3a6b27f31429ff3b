"""The doctor looks at everything that Pulse stands on, says what is wrong and what to do, and repairs what is safe.

A check is a function that yields findings. It changes nothing, and neither reads without need nor waits for long.
What repairs is a function of the finding; it never touches `events.db`, which only `upulse restore` may put back.
"""
