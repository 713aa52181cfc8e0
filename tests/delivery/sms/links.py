"""A link that a test plays by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lasthop.clock import Micros
from lasthop.decision.routes import Route, Variant
from lasthop.delivery.carrier import Outcome, Parcel, Spent
from lasthop.delivery.sms.smpp_units import SmppForm, SmppUnit, prepare
from lasthop.delivery.sms.sms_carrier import Heard, SmsCarrier
from lasthop.delivery.sms.sms_link import OutgoingSms, SmsOutcome, SmsReceipt, SmsUnit

PHONE = "+15551999073"


class ScriptedLink:
    """Keeps what it is given; the test says what becomes of it."""

    def __init__(self, name: str = "one", *, price: int = 0, once: bool = False) -> None:
        self.name = name
        self.price = price
        self.once = once
        self.up = True
        self.receipts = True
        self.window = 10
        self.rests_until: Micros = 0
        self.sent: list[tuple[SmppUnit, Callable[[SmsOutcome], None]]] = []
        self.form = SmppForm()

    def prepare(self, sms: OutgoingSms, now: Micros) -> Sequence[SmsUnit]:
        return prepare(sms, self.form, now)

    def room(self, now: Micros) -> bool:
        return self.up and len(self.sent) < self.window and now >= self.rests_until

    def free_at(self) -> Micros:
        return self.rests_until

    def send(self, unit: SmsUnit, report: Callable[[SmsOutcome], None]) -> None:
        assert isinstance(unit, SmppUnit)
        self.sent.append((unit, report))

    def answer(self, outcome: SmsOutcome) -> SmppUnit:
        """Report on the oldest message that has no answer."""
        unit, report = self.sent.pop(0)
        report(outcome)
        return unit


class Sending:
    """A carrier with scripted links and a clock."""

    def __init__(self, *links: ScriptedLink) -> None:
        self.time: Micros = 1_000_000
        self.wakes: list[Micros] = []
        self.known: set[str] = set()
        self.noted: list[SmsReceipt] = []
        self.carrier = SmsCarrier(clock=self, wake_at=self.wakes.append, receipts=self._note)
        self.carrier.links += links or [ScriptedLink()]
        self.outcomes: list[Outcome] = []
        self.spent: list[Spent | None] = []

    def now(self) -> Micros:
        return self.time

    def _note(self, receipt: SmsReceipt, heard: Heard) -> None:
        names = {f"{receipt.link}/{each}" for each in receipt.message_ids}
        if names & self.known:
            self.noted.append(receipt)
        heard(bool(names & self.known))

    def carry(self, body: bytes = b"hello", media: str = "text/plain", **fields: object) -> None:
        route = Route(Variant.SMS, PHONE)
        parcel = Parcel(route=route, content_type=media, headers=(), body=body, **fields)  # type: ignore[arg-type]
        self.carrier.carry(parcel, self._reported)

    def _reported(self, outcome: Outcome) -> None:
        self.spent.append(outcome.spent)
        self.outcomes.append(msgspec.structs.replace(outcome, spent=None))

    def wait(self, span: Micros) -> None:
        self.time += span
        self.carrier.wake()
