"""Services that devices offer, withdraw and look for through the gateway, and requests by which a
device gathers the answers of several others."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import msgspec

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.feature import Arrival, CoreFeature, Operate, TargetRule
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.publishing.submission import Submission
from lasthop.core.publishing.targets import PlainTarget
from lasthop.core.registry import Device
from lasthop.core.rights.rule import Verb
from lasthop.core.services.providers import ServiceIndex
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.errors import Contradiction, Expired, InvalidRequest, QuotaExceeded, TooLarge
from lasthop.events import Kind
from lasthop.message import GATEWAY, Target, TargetKind
from lasthop.wire.hop.frames import ASKED_TYPE, Headers, MessageFrame, Operation
from lasthop.wire.hop.services import Service, decode_question, decode_service, encode

MOST_ASKED = 2000
"""The largest number of devices that one request may gather answers from: their names must fit into
one message, and every answer is one more message."""

JSON = "application/json"


class ServiceFeature(CoreFeature):
    """Services and requests that gather answers, about which the gateway answers devices itself."""

    def __init__(self, spine: Spine) -> None:
        self._deliveries = spine.deliveries
        self._acceptance = spine.acceptance
        self._fanouts = spine.fanouts
        self.book = ServiceIndex()
        self._deliveries.registry.index(self.book, TargetKind.SERVICE)

    def targets(self) -> Mapping[TargetKind, TargetRule]:
        return {TargetKind.SERVICE: ServiceTarget(self._deliveries, self._fanouts, self.book)}

    def operations(self) -> Mapping[int, Operate]:
        return {
            Operation.OFFER: self._offer,
            Operation.WITHDRAW: self._withdraw,
            Operation.FIND: self._find,
        }

    def _offer(self, session: Session, frame: MessageFrame, _: Headers, now: Micros) -> None:
        self.offer(session, decode_service(frame.body), now)

    def _withdraw(self, session: Session, frame: MessageFrame, _: Headers, now: Micros) -> None:
        self.withdraw(session, frame.body, now)

    def _find(self, session: Session, frame: MessageFrame, _: Headers, now: Micros) -> None:
        self.find(session, frame, now)

    # Devices that connect and disconnect.

    def greeted(self, session: Session, now: Micros, *, joined: bool) -> None:
        if session.device.record.services:
            self.book.came(session.device)

    def away(self, session: Session, now: Micros) -> None:
        if session.device.record.services:
            self.book.went(session.device)

    # Requests that gather.

    def intake(self, arrival: Arrival, now: Micros) -> bool:
        """Tell a device which devices will answer its request, when a request that gathers answers
        is accepted."""
        headers, submission = arrival.headers, arrival.submission
        if headers.gather and headers.reply_within is not None and not arrival.answers_to:
            asked = self._asked_by(arrival.session, submission, now)
            if asked is not None:
                tell = partial(
                    self._tell_asked, arrival.session, arrival.frame, asked, submission.reply_before
                )
                arrival.then.append(tell)
        return False

    def _asked_by(self, session: Session, submission: Submission, now: Micros) -> list[str] | None:
        """Return the names of the devices that will get a gathering request, except the sender's;
        None if they are not known yet."""
        target = submission.target
        if target.kind in (TargetKind.SERVICE, TargetKind.QUEUE):
            raise InvalidRequest(
                "a request to a service or a queue cannot gather answers", target=str(target)
            )
        device = session.device
        rule = self._deliveries.moments.targets[target.kind]
        reached = rule.reach(device.app, submission, now)
        selection = rule.select(device.app, submission, reached, resident=True)
        # Filters have not been matched yet: the device gathers until its deadline.
        if selection is not None and not selection.known:
            return None
        if selection is not None:
            reached = {n: d for n, d in reached.items() if selection.wants(d) is not None}
        if len(reached) > MOST_ASKED:
            raise TooLarge("too many devices to gather from", size=len(reached), limit=MOST_ASKED)
        return [other.name for number, other in reached.items() if number != device.number]

    def _tell_asked(
        self,
        session: Session,
        frame: MessageFrame,
        asked: list[str],
        before: Micros | None,
        now: Micros,
    ) -> None:
        """Tell a gathering device whose answers to wait for."""
        # A device that is not told gathers until its deadline, so a refusal here does no harm.
        with suppress(QuotaExceeded, Expired, Contradiction):
            self._answer(session, frame, msgspec.json.encode(asked), ASKED_TYPE, before, now)

    def offer(self, session: Session, service: Service, now: Micros) -> bool:
        """Let a device offer a service; return False if it already does."""
        rights, device = self._deliveries.rights, session.device
        if rights is not None:
            target = Target(TargetKind.SERVICE, service.name)
            rights.check_device(device.app, device.name, Verb.JOIN, target)
        if not self.book.offer(session.device, service, here=session.greeted):
            return False
        self._changed(session, f"it offers {service.title}", now)
        return True

    def withdraw(self, session: Session, body: bytes, now: Micros) -> bool:
        """End a device's offer of a service; return False if there was none."""
        name = body.decode(errors="replace")
        if not self.book.withdraw(session.device, name):
            return False
        self._changed(session, f"it offers {name} no longer", now)
        return True

    def find(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        """Answer a device that looks for services with the matching offers it may use."""
        question = decode_question(frame.body)
        rights, device = self._deliveries.rights, session.device

        def visible(name: str) -> bool:
            if rights is None:
                return True
            may = rights.device(device.app, device.name)
            return may.answer(Verb.SEND, TargetKind.SERVICE, name).allowed

        offers = self.book.find(device.app, question, visible)
        self._answer(session, frame, encode(offers), JSON, None, now)

    def _changed(self, session: Session, reason: str, now: Micros) -> None:
        device = session.device
        self._deliveries.commits.open.devices[device.number] = device.row()
        self._deliveries.commits.record(Kind.CONTEXT_CHANGED, now, session, reason=reason)

    def _answer(
        self,
        session: Session,
        frame: MessageFrame,
        body: bytes,
        content_type: str,
        before: Micros | None,
        now: Micros,
    ) -> None:
        device = session.device
        answer = Submission(
            target=Target(TargetKind.DEVICE, device.name),
            body=body,
            content_type=content_type,
            deliver_before=before,
            in_reply_to=frame.key,
            answer=True,
        )
        self._acceptance.accept(device.app, GATEWAY, [answer], now)


class ServiceTarget(PlainTarget):
    """One of the devices that offer a service, chosen when a message for it is accepted."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts, book: ServiceIndex) -> None:
        super().__init__(deliveries, fanouts)
        self._book = book

    def reach(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        self._book.assign(app, submission)
        return self._deliveries.moments.targets[submission.target.kind].reach(app, submission, now)
