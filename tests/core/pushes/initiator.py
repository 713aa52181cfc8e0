"""An initiator at the rig: it pushes, cancels, asks, and hears results."""

from __future__ import annotations

from typing import Any

from lasthop.core.lifecycle import State
from lasthop.core.publishing.submission import Submission
from lasthop.core.pushes.feature import Order
from lasthop.core.pushes.push_ids import identify
from lasthop.core.pushes.report import reports_of
from lasthop.core.registry import DeviceRecord
from lasthop.message import DeliveryMethod, Target, TargetKind
from lasthop.store.pushes import KnownPush
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer
from lasthop.wire.pap.documents import ReplaceMethod, ResultNotificationMessage
from lasthop.wire.pap.outcomes import PushReport
from tests.core.rig import APP, Rig

ME = "publisher:initiator"
URL = "http://pi.example.com/results"
NOBODY = Target(TargetKind.PUSH, "")
HEARD = PapAnswer(AnswerVerdict.HEARD)
UNREACHABLE = PapAnswer(AnswerVerdict.UNREACHABLE, "connection refused")


def user(name: str) -> str:
    """The address of a user, as an initiator writes it."""
    return f"WAPPUSH={name}/TYPE=USER@ppg.example.com"


class Initiator:
    """Talks to the rig's gateway as the PAP door does."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def register(self, name: str, user: str = "", **fields: Any) -> int:
        record = DeviceRecord(user=user, **fields)
        device = self.rig.gateway.admin.register(APP, name, record, self.rig.now)
        self.rig.run()
        return device.number

    def known(self, push_id: str) -> KnownPush | None:
        found = self.rig.store.find(KnownPush, [identify(APP, ME, push_id)])
        return next(iter(found.values()), None)

    def push(
        self,
        push_id: str,
        *addresses: str,
        notify_to: str = URL,
        replaces: str | None = None,
        how: ReplaceMethod = ReplaceMethod.ALL,
        run: bool = True,
        **fields: Any,
    ) -> int:
        """Submit; the key of its message."""
        fields.setdefault("body", push_id.encode())
        order = Order(
            push_id=push_id,
            addresses=addresses,
            submission=Submission(target=NOBODY, **fields),
            notify_to=notify_to,
            version="2.1",
            known=self.known(push_id),
            replace=None if replaces is None else how,
            replaced=None if replaces is None else self.known(replaces),
        )
        message = self.rig.gateway.pushes.submit(APP, ME, order, self.rig.now)
        if run:
            self.rig.run()
        return message.key

    def cancel(self, push_id: str, *addresses: str) -> dict[str, int] | None:
        known = self.known(push_id)
        assert known is not None
        codes = self.rig.gateway.pushes.cancel(known, addresses, self.rig.now)
        self.rig.run()
        return None if codes is None else dict(codes)

    def reports(self, push_id: str) -> dict[str, PushReport]:
        """As a status query is answered."""
        known = self.known(push_id)
        assert known is not None
        found = self.rig.gateway.pushes.reports(known)
        stored = self.stored(push_id)
        if found is None:
            return stored
        in_memory = dict(found)
        # What is over at an address is the same in memory and in the store.
        for text, report in in_memory.items():
            if report.state != "pending":
                assert stored[text] == report
        return in_memory

    def stored(self, push_id: str) -> dict[str, PushReport]:
        known = self.known(push_id)
        assert known is not None
        assert known.row is not None
        message = self.rig.store.messages([known.message])[known.message]
        rows = self.rig.store.deliveries(known.message)
        return dict(reports_of(known.row, message.accepted_at, message.method, rows))

    def states(self, push_id: str) -> dict[str, str]:
        return {text: str(report.state) for text, report in self.reports(push_id).items()}

    def results(self) -> list[ResultNotificationMessage]:
        """What is on its way to the initiator."""
        found = [notify.document.message for notify in self.rig.notifies]
        assert all(isinstance(message, ResultNotificationMessage) for message in found)
        return found  # type: ignore[return-value]

    def hear(self, answer: PapAnswer = HEARD) -> list[tuple[str, str, str, int]]:
        """Answer everything that is on its way; push-id, address, state and code of each."""
        results = self.results()
        notifies, self.rig.notifies = self.rig.notifies, []
        for notify in notifies:
            self.rig.gateway.notifications.answered(
                notify.message, notify.place, answer, self.rig.now
            )
        self.rig.run()
        return [(r.push_id, r.address, str(r.state), r.code) for r in results]


__all__ = ["DeliveryMethod", "Initiator", "State"]
