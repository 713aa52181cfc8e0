"""A gateway whose app has a surrogate, and the surrogate's word in the test's hands."""

from __future__ import annotations

from typing import Any

from lasthop.core.limits import Limits
from lasthop.core.surrogates.waiting import SurrogateQueue, SurrogateTerms
from lasthop.store.tables.surrogates import SurrogatesInMemory
from lasthop.surrogate.mail import Content, Mail, MailAction, OutgoingMail, Verdict
from tests.core.rig import APP, Rig
from tests.store.peek import rows_of

RELAY = Verdict()


class Office(Rig):
    """A rig that gives what waits for the surrogate to the test."""

    def __init__(self, limits: Limits | None = None, **terms: Any) -> None:
        super().__init__(limits, surrogate=SurrogateTerms(**terms))

    @property
    def post(self) -> SurrogateQueue:
        post = self.gateway.surrogates.post(APP)
        assert post is not None
        return post

    @property
    def memory(self) -> dict[str, bytes]:
        """The state as it is here."""
        return self.post.state

    @property
    def stored_state(self) -> dict[str, bytes]:
        states = rows_of(self.store, SurrogatesInMemory).kept.states
        return {name: row.value for (_, name), row in states.items()}

    @property
    def mails(self) -> list[Mail]:
        """What the surrogate has been given and has not spoken of."""
        return [mail for consult in self.consults for mail in consult.mails]

    def say(self, verdict: Verdict = RELAY, *, run: bool = True) -> str | None:
        """The surrogate speaks of the next."""
        mail = self._next()
        refused = self.gateway.surrogates.consulted(APP, mail.number, verdict, self.now)
        if refused is not None:
            self.consults.clear()
        if run:
            self.run()
        return refused

    def fail(self, reason: str = "OSError at it.py:1", *, hopeless: bool = False) -> None:
        """The surrogate fails at the next, and leaves the rest."""
        mail = self._next()
        self.consults.clear()
        self.gateway.surrogates.failed(APP, mail.number, reason, self.now, hopeless=hopeless)
        self.run()

    def _next(self) -> Mail:
        if not self.consults:
            self.run()
        consult = self.consults[0]
        mail = consult.mails.pop(0)
        if not consult.mails:
            self.consults.pop(0)
        return mail

    def reasons(self, key: int) -> list[str]:
        """Why what happened to a message happened."""
        return [event.get("reason", "") for event in self.events() if event.get("msg") == key]


def changed(body: bytes, **fields: Any) -> Verdict:
    """It goes on with another body."""
    return Verdict(MailAction.RELAY, Content(body, **fields))


def answer(body: bytes, **fields: Any) -> Verdict:
    """Its sender gets this."""
    return Verdict(MailAction.ANSWER, Content(body, **fields))


def drop(reason: str = "") -> Verdict:
    """It goes no further."""
    return Verdict(MailAction.DROP, reason=reason)


def sending(to: str, body: bytes, **fields: Any) -> Verdict:
    """It goes on, and one more goes with it."""
    return Verdict(sends=(OutgoingMail(to, Content(body), **fields),))


def remembering(**entries: bytes) -> Verdict:
    """It goes on, and the state changes."""
    return Verdict(state=entries)
