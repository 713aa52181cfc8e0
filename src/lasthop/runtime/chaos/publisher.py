"""A publisher that loses nothing: it writes down what it sends, and repeats what was not answered.

    python -m lasthop.runtime.chaos.publisher PLAN.json

The plan is a `PublisherPlan`. Messages go out one after the other, so that their order is known.
When the outcome of one is open (no answer, or an answer that says so), the same message is sent
again under the same key until the outcome is known. A refusal is believed, and the next message
follows. Now and then an accepted message is sent again, and has to be known still. Once there is a
file at `enough`, the publisher ends as soon as the outcome of its last message is known.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Protocol

import msgspec

from lasthop.message import DeliveryMethod
from lasthop.runtime.chaos.account import Account, AccountLine, Said, read_account
from lasthop.runtime.chaos.gateway_http import open_connection
from lasthop.runtime.cli.pap_client import Initiator
from lasthop.runtime.failure import Failure
from lasthop.wire.pap.documents import PushMessage, PushResponse, QualityOfService
from lasthop.wire.pap.multipart import Entity

PATIENCE = 2.0
"""Seconds for an answer; then the outcome is open."""

PAUSE = 0.03
"""Seconds between two messages, so that a busy machine keeps up."""

BETWEEN_ATTEMPTS = 0.1
"""Seconds before an open message is sent again."""

AFTER_A_REFUSAL = 0.25
"""Seconds before the next message, when one was refused."""

ASKED_AGAIN = 8
"""Every how many messages an accepted one is sent again."""

REMEMBERED = 40
"""The number of accepted messages of which the oldest is the one that is sent again."""


class PublisherPlan(msgspec.Struct, kw_only=True):
    """What a publisher is to do."""

    name: str
    door: str
    """The door to publish at: `rest`, `topic` or `pap`."""
    url: str
    """Where the gateway's HTTP port is."""
    account: str
    """The file that the account is written to."""
    enough: str
    """The file that ends the publisher: unlike a signal, one that is just starting sees it too."""
    devices: list[str]
    """All devices. A topic reaches all of them, other messages go to each in turn."""
    ca: str | None = None


class Outcome(Enum):
    """What an answer says about the message that was published."""

    ACCEPTED = auto()
    REPEATED = auto()
    """The message had already been accepted before this request."""
    REFUSED = auto()
    """Nothing was done for this request, and the next one may fare better."""
    DENIED = auto()
    """The request is wrong, and will always be."""
    OPEN = auto()


@dataclass(frozen=True, slots=True)
class PublishAnswer:
    """What the gateway said of one request."""

    outcome: Outcome
    id: str = ""
    why: str = ""


class PublisherDoor(Protocol):
    """A door of the gateway, as a publisher uses it."""

    def targets(self, number: int) -> list[str]:
        """Return the devices that get the message with this number."""
        ...

    def ask(self, text: str, devices: list[str]) -> PublishAnswer:
        """Send a message under a key made from its text."""
        ...


class RestDoor:
    """Publishes over REST: to one device after the other, or to a topic."""

    def __init__(self, plan: PublisherPlan) -> None:
        self._plan = plan
        self._connection = open_connection(plan.url, plan.ca, PATIENCE)

    def targets(self, number: int) -> list[str]:
        devices = self._plan.devices
        return devices if self._plan.door == "topic" else [devices[number % len(devices)]]

    def ask(self, text: str, devices: list[str]) -> PublishAnswer:
        to = {"topic": TOPIC} if self._plan.door == "topic" else {"device": devices[0]}
        body = msgspec.json.encode({**to, "body": text})
        headers = {"Idempotency-Key": text, "Content-Type": "application/json"}
        try:
            self._connection.request("POST", "/v1/messages", body, headers)
            response = self._connection.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return PublishAnswer(Outcome.OPEN, why=repr(error))
        return rest_answer(response.status, said)


TOPIC = "chaos"


def rest_answer(status: int, said: bytes) -> PublishAnswer:
    """Return what an answer of the REST door means."""
    try:
        answer = msgspec.json.decode(said)
    except msgspec.DecodeError:
        return PublishAnswer(Outcome.OPEN, why=f"{status} {said[:200]!r}")
    if status < 300:
        outcome = Outcome.REPEATED if answer.get("repeated") else Outcome.ACCEPTED
        return PublishAnswer(outcome, id=answer["id"])
    error = answer.get("error", {})
    why = f"{status} {error.get('code')}: {error.get('detail')}"
    if status == 429 or error.get("code") == "overloaded":
        return PublishAnswer(Outcome.REFUSED, why=why)
    return PublishAnswer(Outcome.OPEN if status >= 500 else Outcome.DENIED, why=why)


class PapPublisherDoor:
    """Publishes over PAP: to one device's user after the other."""

    def __init__(self, plan: PublisherPlan) -> None:
        self._devices = plan.devices
        ca = None if plan.ca is None else Path(plan.ca)
        self._initiator = Initiator(url=f"{plan.url}/pap", ca=ca, timeout=PATIENCE)

    def targets(self, number: int) -> list[str]:
        return [self._devices[number % len(self._devices)]]

    def ask(self, text: str, devices: list[str]) -> PublishAnswer:
        push_id = f"{text}@chaos.lasthop"
        message = PushMessage(
            push_id,
            (f"WAPPUSH={devices[0]}/TYPE=USER@chaos.lasthop",),
            quality=QualityOfService(method=DeliveryMethod.CONFIRMED),
        )
        content = Entity((("Content-Type", "text/plain; charset=utf-8"),), text.encode())
        try:
            said = self._initiator.ask(message, content).document.message
        except Failure as failure:
            return PublishAnswer(Outcome.OPEN, why=str(failure))
        if not isinstance(said, PushResponse):
            return PublishAnswer(Outcome.OPEN, why=repr(said))
        return pap_answer(said.result.code, push_id, said.result.desc)


PAP_OUTCOMES = {
    1001: Outcome.ACCEPTED,
    # The push id is taken: by an earlier attempt.
    2007: Outcome.REPEATED,
    # An error whose outcome is open, and a refusal for want of room (docs/how-to/pap.md).
    4000: Outcome.OPEN,
    4001: Outcome.REFUSED,
}


def pap_answer(code: int, push_id: str, desc: str | None) -> PublishAnswer:
    """Return what a result code of PAP means for a push."""
    outcome = PAP_OUTCOMES.get(code, Outcome.DENIED)
    return PublishAnswer(outcome, id=push_id, why=f"{code}: {desc}")


class ChaosPublisher:
    """Sends messages one after the other, and keeps the account."""

    def __init__(self, name: str, door: PublisherDoor, account: Path) -> None:
        self._name = name
        self._door = door
        self._accepted: deque[AccountLine] = deque(maxlen=REMEMBERED)
        self._open: AccountLine | None = None
        self._number = 0
        for entry in read_account(account):
            self._number = max(self._number, entry.number + 1)
            if entry.said is Said.SENT:
                self._open = entry
            elif self._open is not None and entry.text == self._open.text:
                self._open = None
            if entry.said is Said.ACCEPTED:
                self._accepted.append(entry)
        self._account = Account(account)

    def run(self, enough: Callable[[], bool]) -> None:
        """Publish messages until the run tells the publisher to stop."""
        if self._open is not None:
            self._send(self._open, first=False)
        while not enough():
            number = self._number
            self._number += 1
            entry = AccountLine(
                number, Said.SENT, f"{self._name}-{number}", self._door.targets(number)
            )
            self._account.write(entry)
            self._send(entry, first=True)
            if number % ASKED_AGAIN == 0 and len(self._accepted) == REMEMBERED:
                self._ask_again(self._accepted[0])
            time.sleep(PAUSE)
        self._account.close()

    def _send(self, entry: AccountLine, *, first: bool) -> None:
        """Send a message until its outcome is known; `first` if nobody has tried before."""
        while True:
            answer = self._door.ask(entry.text, entry.devices)
            known = msgspec.structs.replace(entry, id=answer.id, why=answer.why)
            match answer.outcome:
                case Outcome.ACCEPTED | Outcome.REPEATED:
                    if first and answer.outcome is Outcome.REPEATED:
                        why = "it was called a repetition at the first attempt"
                        self._deny(entry, why)
                    known.said, known.why = Said.ACCEPTED, ""
                    self._account.write(known)
                    self._accepted.append(known)
                    return
                case Outcome.DENIED:
                    known.said = Said.REFUSED
                    self._account.write(known)
                    return
                case Outcome.REFUSED if first:
                    # Nothing was done, says the gateway; after an open attempt that one may still
                    # be under way, and a refusal tells only of the last.
                    known.said = Said.REFUSED
                    self._account.write(known)
                    time.sleep(AFTER_A_REFUSAL)
                    return
            first = False
            time.sleep(BETWEEN_ATTEMPTS)

    def _ask_again(self, entry: AccountLine) -> None:
        """Send an accepted message again: it must be known, and by the same id."""
        answer = self._door.ask(entry.text, entry.devices)
        if answer.outcome in (Outcome.ACCEPTED, Outcome.DENIED):
            self._deny(entry, f"accepted before as {entry.id}, and now {answer}")
        elif answer.outcome is Outcome.REPEATED and answer.id != entry.id:
            self._deny(entry, f"accepted before as {entry.id}, and now as {answer.id}")

    def _deny(self, entry: AccountLine, why: str) -> None:
        self._account.write(msgspec.structs.replace(entry, said=Said.DENIED, why=why))


def main(path: Path) -> None:
    """Run the publisher of a plan."""
    plan = msgspec.json.decode(path.read_bytes(), type=PublisherPlan)
    door = PapPublisherDoor(plan) if plan.door == "pap" else RestDoor(plan)
    enough = Path(plan.enough)
    ChaosPublisher(plan.name, door, Path(plan.account)).run(enough.exists)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
