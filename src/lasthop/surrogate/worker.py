"""The worker process of one app: it loads the surrogate's class and obeys the gateway's orders.

`python -m lasthop.surrogate.worker GATEWAY FD CLASS MEMORY [PATH]`, started by the gateway alone.
Whatever the surrogate does, the worst that can happen is that this process ends.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
import traceback
from pathlib import PurePath
from types import TracebackType

from lasthop.surrogate.frames import (
    Begin,
    Begun,
    Done,
    Frames,
    FrameTooLong,
    InputFailed,
    Loaded,
    Report,
    Unloadable,
    decode_order,
    frame,
)
from lasthop.surrogate.loading import CannotLoad, load
from lasthop.surrogate.mail import Mail
from lasthop.surrogate.surrogate import Surrogate, SurrogateRunner

CHUNK = 1 << 16
MAX_DETAIL = 4000
PR_SET_PDEATHSIG = 1
OUT_OF_MEMORY = 3


def main(arguments: list[str]) -> None:
    """Load the surrogate and serve until the gateway closes the connection."""
    gateway, descriptor, place, memory, *path = arguments
    _die_with_the_gateway(int(gateway))
    line = socket.socket(fileno=int(descriptor))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    sys.path[:0] = path
    worker = Worker(line)
    try:
        kind = load(place)
    except BaseException as error:
        worker.say(Unloadable(why(error)))
        return
    worker.say(Loaded())
    worker.serve(kind)


class Worker:
    """The worker's end of the connection to the gateway."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._frames = Frames()
        self._pid = os.getpid()

    def say(self, report: Report) -> None:
        """Send a report to the gateway."""
        if os.getpid() == self._pid:
            self._line.sendall(frame(report))
        else:
            os._exit(0)  # A process that the surrogate forked must not speak for the worker.

    def serve(self, kind: type[Surrogate]) -> None:
        """Carry out the gateway's orders until it closes the connection."""
        runner: SurrogateRunner | None = None
        while data := self._line.recv(CHUNK):
            for one in self._frames.receive(data):
                order = decode_order(one)
                if isinstance(order, Begin):
                    runner = self._begin(kind, order)
                elif runner is not None:
                    self._work(runner, order.mails)

    def _begin(self, kind: type[Surrogate], order: Begin) -> SurrogateRunner | None:
        try:
            runner = SurrogateRunner(kind, order.entries, limit=order.limit)
        except BaseException as error:
            self.say(Unloadable(why(error)))
            return None
        self.say(Begun())
        return runner

    def _work(self, runner: SurrogateRunner, mails: list[Mail]) -> None:
        for mail in mails:
            try:
                verdict = runner.handle(mail)
            except BaseException as error:
                self._failed(mail, error)
                return
            try:
                self.say(Done(mail.number, verdict))
            except FrameTooLong as error:
                # The surrogate's state has changed without the gateway, which restarts the worker.
                self.say(InputFailed(mail.number, why(error), ""))
                os._exit(1)

    def _failed(self, mail: Mail, error: BaseException) -> None:
        detail = "".join(traceback.format_exception(error))[-MAX_DETAIL:]
        self.say(InputFailed(mail.number, where(error), detail))
        if isinstance(error, MemoryError):
            os._exit(OUT_OF_MEMORY)  # Objects may be half changed after a failed allocation.


def why(error: BaseException) -> str:
    """Return an error in one line, for the person who installs the surrogate."""
    if isinstance(error, CannotLoad):
        return str(error)
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def where(error: BaseException) -> str:
    """Return an error's type and place without its text, which may quote a message and must not get
    into the event log."""
    place: TracebackType | None = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    name = type(error).__name__
    if place is None:
        return name
    return f"{name} at {PurePath(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"


def _die_with_the_gateway(gateway: int) -> None:
    """Let the system kill this process with the gateway, where it can: a surrogate in an endless
    loop never notices that the connection is closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != gateway:
            os._exit(0)  # The gateway ended before the request took effect.


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # Threads of the surrogate must not keep the process alive.
