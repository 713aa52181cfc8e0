"""What devices arrange among themselves through the gateway: who is asked when somebody gathers,
and which services are offered, withdrawn and looked for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from lasthop.clock import Micros
from lasthop.core.acceptance import Acceptance, Submission
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device
from lasthop.core.session import Session
from lasthop.errors import Contradiction, Expired, InvalidRequest, QuotaExceeded, TooLarge
from lasthop.events import Kind
from lasthop.message import GATEWAY, Target, TargetKind
from lasthop.wire.hop.frames import ASKED_TYPE, MessageFrame
from lasthop.wire.hop.services import Service, decode_question, encode

MOST_ASKED = 2000
"""Devices that one request may gather from: their names are one message, and so is the answer of
each."""

JSON = "application/json"


class Exchanges:
    """Answers devices in the gateway's own name."""

    def __init__(self, room: Mailroom, acceptance: Acceptance) -> None:
        self._room = room
        self._acceptance = acceptance

    def asked_by(
        self, session: Session, target: Target, content_type: str, body: bytes
    ) -> list[str] | None:
        """Who will get a request that gathers, but for who asks; None if filters decide about that
        and nobody can tell yet."""
        if target.kind in (TargetKind.SERVICE, TargetKind.QUEUE):
            raise InvalidRequest(
                "a service or a queue is asked, not gathered from", target=str(target)
            )
        device = session.device
        registry = self._room.registry
        reached: Mapping[int, Device] = registry.reach(device.app, target)
        if target.kind is TargetKind.TOPIC:
            sieve = registry.filters.sieve(device.app, target.name, reached, content_type, body)
            if sieve is not None and sieve.reading is None:
                return None
            if sieve is not None:
                reached = {n: d for n, d in reached.items() if sieve.wants(d) is not None}
        if len(reached) > MOST_ASKED:
            raise TooLarge("too many to gather from", size=len(reached), limit=MOST_ASKED)
        return [other.name for number, other in reached.items() if number != device.number]

    def tell_asked(
        self,
        session: Session,
        frame: MessageFrame,
        asked: list[str],
        before: Micros | None,
        now: Micros,
    ) -> None:
        """Let the device that gathers know whose answers to wait for."""
        # Without a word about them it gathers until its deadline.
        with suppress(QuotaExceeded, Expired, Contradiction):
            self._answer(session, frame, msgspec.json.encode(asked), ASKED_TYPE, before, now)

    def offer(self, session: Session, service: Service, now: Micros) -> bool:
        """A device offers a service; false when it did."""
        services = self._room.registry.services
        if not services.offer(session.device, service, here=session.greeted):
            return False
        self._changed(session, f"it offers {service.title}", now)
        return True

    def withdraw(self, session: Session, body: bytes, now: Micros) -> bool:
        """A device offers a service no longer; false when it did not."""
        name = body.decode(errors="replace")
        if not self._room.registry.services.withdraw(session.device, name):
            return False
        self._changed(session, f"it offers {name} no longer", now)
        return True

    def find(self, session: Session, frame: MessageFrame, now: Micros) -> None:
        """Say which services there are."""
        question = decode_question(frame.body)
        offers = self._room.registry.services.find(session.device.app, question)
        self._answer(session, frame, encode(offers), JSON, None, now)

    def _changed(self, session: Session, reason: str, now: Micros) -> None:
        device = session.device
        self._room.journal.commit.devices[device.number] = device.row()
        self._room.journal.tell(Kind.CONTEXT_CHANGED, now, session, reason=reason)

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
