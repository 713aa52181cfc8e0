"""Links over SOCK_SEQPACKET: Unix sockets, and Bluetooth's L2CAP where the machine has it.

The kernel keeps order and boundaries, so that a packet is a unit. asyncio has no transport for such
sockets; the link only uses the loop's readiness callbacks.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections import deque

from lasthop.errors import FrameTooLarge, HopError
from lasthop.transport.address import GatewayAddress
from lasthop.transport.link import ChannelLink, Ends, Machine
from lasthop.transport.stream import HIGH_WATER
from lasthop.wire.hop.pieces import SMALLEST, Joiner, cut

UNIX_PACKET = 32 * 1024
"""The largest number of bytes in a packet on a Unix socket: well below what the kernel allows,
which needs the memory in one piece."""

L2CAP_PACKET = 672
"""The largest number of bytes in a packet that every Bluetooth device accepts unless it says
more."""

LARGEST = 64 * 1024
"""The largest number of bytes in a packet that is read: L2CAP's own limit."""

AT_ONCE = 16
"""The largest number of packets that are read in one go, before other work has its turn."""

_SOL_L2CAP, _L2CAP_OPTIONS = 6, 1


class SeqpacketLink(ChannelLink):
    """A link over a connected socket that keeps the boundaries of packets."""

    __slots__ = (
        "_ending",
        "_full",
        "_joiner",
        "_loop",
        "_packet",
        "_socket",
        "_throttle",
        "_unsent",
        "_unsent_bytes",
    )

    def __init__(
        self, ends: Ends, machine: Machine, connected: socket.socket, *, throttle: bool = False
    ) -> None:
        """Take over a connected socket; with `throttle` the link does not read while the peer does
        not."""
        super().__init__(ends, machine, local=connected.family == socket.AF_UNIX)
        connected.setblocking(False)
        self._socket = connected
        self._packet = packet_size(connected)
        self._throttle = throttle
        self._joiner = Joiner()
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._full = False
        self._ending = False
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Start reading packets, and start the handshake."""
        self._loop.add_reader(self._socket, self._readable)
        self.begin()

    def _readable(self) -> None:
        for _ in range(AT_ONCE):
            if self.over:
                return
            try:
                packet, _, flags, _ = self._socket.recvmsg(LARGEST)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._end(error.strerror or str(error))
                return
            if not packet:
                self._end("the peer hung up")
                return
            self._take(packet, truncated=bool(flags & socket.MSG_TRUNC))

    def _take(self, packet: bytes, *, truncated: bool) -> None:
        try:
            if truncated:
                raise FrameTooLarge("a packet is too large", most=LARGEST)
            unit = self._joiner.take(packet, most=self.machine.max_unit)
        except HopError as error:
            self.fail(error)
            return
        if unit is not None:
            self.arrived(unit)

    # What a carrier of `ChannelLink` implements.

    def write(self, units: list[bytes]) -> None:
        for unit in units:
            for packet in cut(unit, self._packet):
                self._unsent.append(packet)
                self._unsent_bytes += len(packet)
        self._writable()

    def hang_up(self) -> None:
        self._ending = True
        self._writable()

    def cut(self) -> None:
        self._end("cut off")

    def _writable(self) -> None:
        if self.over:
            return
        while self._unsent:
            try:
                self._socket.send(self._unsent[0])
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    break
                self._end(error.strerror or str(error))
                return
            self._unsent_bytes -= len(self._unsent.popleft())
        if self._unsent:
            self._loop.add_writer(self._socket, self._writable)
        else:
            self._loop.remove_writer(self._socket)
        self._tell_fullness()
        if self._ending and not self._unsent:
            self._fall_silent()

    def _fall_silent(self) -> None:
        """Send no more, but read until the peer closes the socket. If the gateway closed it while
        something of the peer is unread, the kernel would discard the CLOSE that the peer has not
        read yet."""
        self._ending = False
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            self._end(error.strerror or str(error))
            return
        self._loop.add_reader(self._socket, self._readable)

    @property
    def unsent(self) -> int:
        return self._unsent_bytes

    def _tell_fullness(self) -> None:
        self.look_drained()
        full = self._unsent_bytes >= (HIGH_WATER // 4 if self._full else HIGH_WATER)
        if full is self._full:
            return
        self._full = full
        if self._throttle:
            if full:
                self._loop.remove_reader(self._socket)
            else:
                self._loop.add_reader(self._socket, self._readable)
        self.full(full)

    def _end(self, reason: str) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
        self.ended(reason)


async def connect(address: GatewayAddress) -> socket.socket:
    """Return a socket that is connected to this address; raise OSError."""
    loop = asyncio.get_running_loop()
    if address.scheme == "l2cap":
        connected = l2cap_socket()
        place: object = (address.host, address.port)
    else:
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        place = address.path
    connected.setblocking(False)
    try:
        await loop.sock_connect(connected, place)  # type: ignore[arg-type]
    except BaseException:
        connected.close()
        raise
    return connected


def l2cap_socket() -> socket.socket:
    """Return a socket for Bluetooth; raise OSError where the machine, or this Python, has none."""
    family = getattr(socket, "AF_BLUETOOTH", None)
    if family is None:
        raise OSError(errno.EAFNOSUPPORT, "this Python was built without Bluetooth")
    try:
        return socket.socket(family, socket.SOCK_SEQPACKET, socket.BTPROTO_L2CAP)
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(error.errno, f"this machine has no Bluetooth: {why}") from None


def packet_size(connected: socket.socket) -> int:
    """Return the largest size in bytes of a packet that the peer of this socket accepts."""
    if connected.family == socket.AF_UNIX:
        return UNIX_PACKET
    try:
        # struct l2cap_options begins with the sizes that we send and receive (bluetooth/l2cap.h).
        options = connected.getsockopt(_SOL_L2CAP, _L2CAP_OPTIONS, 12)
        (size,) = struct.unpack_from("=H", options)
        return max(SMALLEST, int(size))
    except (OSError, struct.error):
        return L2CAP_PACKET
