"""The first process of a PID namespace, as in a container: the kernel makes it the parent of all orphans there.

Nobody else can reap them, and until then they count: a limit of processes is used up by the dead, and nothing can be started
again. The daemon can't tell them from children that somebody in it waits for. So it goes on as a child of one that waits for
nobody.
"""

import os
import signal

_PASSED_ON = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
)


def leave_first_process() -> None:
    """Go on as a child, if this is the first process. That one reaps, passes on signals, and ends as this one does.

    To be called before there are threads.
    """
    if os.getpid() != 1:
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who ignores it is told of no end
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return
    while True:
        number = signal.sigwait({*_PASSED_ON, signal.SIGCHLD})
        if number != signal.SIGCHLD:
            os.kill(child, number)  # it is there, since it was not reaped
            continue
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                os._exit(code if code >= 0 else 128 - code)
