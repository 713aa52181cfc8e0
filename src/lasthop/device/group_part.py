"""Atomic and claimable group messages on the device. An atomic message is stored and acknowledged,
but shown only after its group's decision; decisions come as instructions of the gateway."""

from __future__ import annotations

from lasthop.clock import Micros
from lasthop.device.change import Change
from lasthop.device.kept import KeptMessages
from lasthop.device.message import Message
from lasthop.device.part import DevicePart
from lasthop.device.session_core import SessionCore
from lasthop.device.session_events import Decided, Retracted, SessionEvent
from lasthop.device.showings import Showing
from lasthop.message import Binding
from lasthop.wire.hop.decisions import GroupVerdict, decode_decision
from lasthop.wire.hop.frames import Headers, Operation


class GroupPart(DevicePart):
    """The withheld messages of atomic groups, and the decisions about group messages. On the device
    a withheld message has no deadline: the gateway decides about it, and always sends its
    decision."""

    word = Operation.DECISION
    takes_late = True

    def __init__(self, core: SessionCore) -> None:
        self._arrivals = core.arrivals
        self._withheld = KeptMessages(core.arrivals.kept_keys, core.mark)
        self._told: list[Retracted | Decided] = []

    def claims(self, message: Message, headers: Headers, now: Micros) -> bool:
        if not is_withheld(headers):
            return False
        self._withhold(message)
        return True

    def shows_at_last(self, message: Message) -> bool:
        # The release was here before the message that it shows, so the gateway sent the message
        # once more, unbound.
        return not is_withheld(message.headers) and self._withheld.take(message.key) is not None

    def cut_off(self, message: Message, *, related: bool) -> bool:
        if not is_withheld(message.headers):
            return False
        if related:
            # The message has been acknowledged, so that the group's decision may rest on it.
            self._withhold(message)
        else:
            self._arrivals.close(message)
        return True

    def started_over(self, *, related: bool) -> None:
        if not related:
            self._withheld.clear()  # The new gateway knows nothing of these, and will never decide.

    def _withhold(self, message: Message) -> None:
        self._arrivals.close(message)
        if message.key not in self._withheld:
            self._withheld.keep(self._arrivals.apart(message.frame))

    def shown_by(self, control: Message) -> list[int]:
        decode_decision(control.body)
        return [control.in_reply_to or 0]

    def follow(self, control: Message, now: Micros) -> None:
        decision, key = decode_decision(control.body), control.in_reply_to or 0
        if decision.verdict is GroupVerdict.RELEASE:
            self._release(control, key)
            return
        if decision.verdict is GroupVerdict.ABORT:
            self._withheld.take(key)
        elif decision.verdict is GroupVerdict.RETRACT:
            self._retract(key)
        else:
            self._told.append(Decided(key, decision))
        self._arrivals.close(control)

    def _release(self, control: Message, key: int) -> None:
        """Show a withheld message; its turn comes at the place of the decision."""
        showing = Showing(control, self.partly_shown)
        message = self._withheld.take(key)
        if message is not None:
            moved = self._arrivals.move_in(message, lane=control.lane, in_time=True)
            self._arrivals.handover.add(moved)
            showing.left.add(key)
        else:
            self._arrivals.look_for(key, showing)
        self._arrivals.begin_showing(showing)

    def _retract(self, key: int) -> None:
        """Take a message back that another device has claimed, unless the application already has
        it."""
        message = self._arrivals.known(key)
        if message is not None and not message.offered:
            self._arrivals.let_go(message)
            self._told.append(Retracted(key, False))
        elif self._arrivals.knows(key):
            self._told.append(Retracted(key, True))

    def collect(self, change: Change) -> None:
        self._withheld.collect(change)

    def keeps_again(self, message: Message, rank: float) -> bool:
        if not is_withheld(message.headers):
            return False
        self._withheld.restore(message)
        return True

    def session_events(self) -> list[SessionEvent]:
        told, self._told = self._told, []
        return [*told]


def is_withheld(headers: Headers) -> bool:
    """Whether a message may be shown only after its group's decision."""
    return headers.binding is Binding.ATOMIC
