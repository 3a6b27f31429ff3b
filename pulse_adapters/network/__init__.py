"""Probes the network: names by DNS, pages by HTTP, in a child process that can be killed if it hangs.

`prober` lives in the daemon and speaks to the child over a socket; `probe` is the child's program, and `names`,
`pages` and `certificates` are imported only there. TLS is spoken nowhere else. Nothing here decides what an
answer means.
"""
