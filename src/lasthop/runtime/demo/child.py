"""A `lasthop` command as a child of the demo: the command does not outlive the demo.

    python -m lasthop.runtime.demo.child PARENT_PID COMMAND...

On Linux the system sends the child a signal when the parent dies, however it dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

SET_DEATH_SIGNAL = 1
"""The number of Linux's PR_SET_PDEATHSIG; other systems have nothing like it that works without a
thread."""


def follow(parent: int, number: int = signal.SIGTERM) -> None:
    """Have the system send this process a signal when the parent ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(SET_DEATH_SIGNAL, number)
    if os.getppid() != parent:  # The parent died before the call.
        os._exit(1)


if __name__ == "__main__":
    from lasthop.runtime.cli import main

    follow(int(sys.argv[1]))
    main(sys.argv[2:])
