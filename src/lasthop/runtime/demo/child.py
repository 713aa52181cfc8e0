"""A `lasthop` command as a child of the demo: it does not outlive its parent.

    python -m lasthop.runtime.demo.child PARENT_PID COMMAND...

Where the system can, it sends the child a signal when the parent dies, in whichever way.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from lasthop.runtime.cli import main

SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux; other systems have nothing like it that needs no thread."""


def follow(parent: int) -> None:
    """End when the parent ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(SET_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:  # It died before we asked.
        os._exit(1)


if __name__ == "__main__":
    follow(int(sys.argv[1]))
    main(sys.argv[2:])
