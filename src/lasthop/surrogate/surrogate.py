"""The class that applications derive theirs from, and the desk at which it works.

A surrogate sees one message at a time, decides, and may change its state and send more. The desk
turns what it did into one verdict, and takes back everything of an input that failed. Nothing here
does I/O: the same desk works in the worker process and in rehearsal.
"""

from __future__ import annotations

from typing import Any

from lasthop.clock import SECOND, Micros
from lasthop.message import DEFAULT_CONTENT_TYPE, DEFAULT_PRIORITY
from lasthop.surrogate.actions import (
    Answer,
    Decision,
    Drop,
    HeaderValues,
    Relay,
    make_content,
)
from lasthop.surrogate.caching import METHOD, TERMS, Cache, ForwardedRequests
from lasthop.surrogate.mail import Mail, MailAction, OutgoingMail, Verdict, Way
from lasthop.surrogate.state import Ledger, State

MOST_SENDS = 100
"""Messages that one input may cause: with more, a mistake in one hook floods every device."""

MAX_REASON = 500


class Surrogate:
    """Acts for an application's devices at the gateway. Everything is relayed unless a subclass
    says otherwise."""

    state: State
    """What it remembers. It survives restarts, and changes together with what an input causes."""
    now: Micros = 0
    """The time of the input at hand, in microseconds since 1970."""
    _sends: list[OutgoingMail]
    _runner: SurrogateRunner

    def to_device(self, mail: Mail) -> Decision | None:
        """A message is on its way to a device. None lets it go on as it is.

        Requests go to the method that is marked for them, if there is one.
        """
        return self._runner.serve(mail)

    def from_device(self, mail: Mail) -> Decision | None:
        """A device has sent a message, or an answer. None lets it go on as it is."""
        return None

    def send(
        self,
        to: str,
        body: bytes | str,
        *,
        content_type: str = DEFAULT_CONTENT_TYPE,
        title: str | None = None,
        headers: HeaderValues = (),
        rank: float = 0.0,
        priority: int = DEFAULT_PRIORITY,
        ttl: float | None = None,
    ) -> None:
        """Send one more message (`device:NAME`, `user:NAME`, `topic:NAME` or `app:`), good for
        `ttl` seconds. It leaves if the input counts, and does not pass a surrogate."""
        if len(self._sends) >= MOST_SENDS:
            raise ValueError(f"one input may send {MOST_SENDS} messages")
        if not 0 <= priority <= 9:
            raise ValueError("a priority is a number from 0 to 9")
        if ttl is not None and ttl <= 0:
            raise ValueError("a message is good for more than no time at all")
        content = make_content(
            body, content_type=content_type, title=title, headers=headers, rank=rank
        )
        micros = None if ttl is None else max(1, round(ttl * SECOND))
        self._sends.append(OutgoingMail(str(to), content, priority, micros))

    def forget(self, method: str, *, device: str | None = None) -> None:
        """Keep no answer to this method's requests any longer; with `device`, none of its."""
        self._runner.forget(method, device)


class SurrogateRunner:
    """Where a surrogate works: inputs come in, verdicts go out."""

    def __init__(self, kind: type[Surrogate], entries: dict[str, bytes], *, limit: int) -> None:
        """`entries` is the state as it was kept, `limit` how many bytes it may have."""
        self._ledger = Ledger(entries, limit=limit)
        self._asked = ForwardedRequests(self._ledger)
        self._methods: dict[str, str] = {}
        self._caches: dict[str, Cache] = {}
        for name in dir(kind):
            self._mark(name, getattr(kind, name))
        surrogate = kind.__new__(kind)
        surrogate.state = State(self._ledger, "u")
        surrogate._sends = []
        surrogate._runner = self
        surrogate.__init__()  # type: ignore[misc]
        if self._ledger.changes() or surrogate._sends:
            raise TypeError(
                "__init__ may look at the state but not change it, and send nothing: that takes"
                " a message"
            )
        self._ledger.forget()
        self._surrogate = surrogate

    def _mark(self, name: str, function: Any) -> None:
        method = getattr(function, METHOD, None)
        if method is None:
            return
        if method in self._methods:
            raise TypeError(f"{self._methods[method]} and {name} are both for {method!r}")
        self._methods[method] = name
        terms = getattr(function, TERMS, None)
        if terms is not None:
            self._caches[method] = Cache(self._ledger, method, terms)

    def handle(self, mail: Mail) -> Verdict:
        """Let the surrogate act on one input. What it raises is raised, and nothing has changed."""
        surrogate = self._surrogate
        surrogate.now = mail.at
        surrogate._sends = []
        try:
            if mail.way is Way.TO_DEVICE:
                decision = surrogate.to_device(mail)
            else:
                decision = surrogate.from_device(mail)
                self._learn(mail, decision)
            verdict = self._verdict(mail, decision)
        except BaseException:
            self._ledger.forget()
            self._asked.forget()
            for cache in self._caches.values():
                cache.forget()
            raise
        self._ledger.keep(verdict.state)
        return verdict

    def serve(self, mail: Mail) -> Decision | None:
        """Let a request be answered from the cache, or by the method that is marked for it."""
        method = mail.method
        name = self._methods.get(method)
        if name is None:
            return None
        cache = self._caches.get(method)
        if cache is None:
            decision: Decision | None = getattr(self._surrogate, name)(mail)
            return decision
        key = cache.key_of(mail)
        found = cache.find(key, mail)
        if found is not None:
            return Answer(found.body, found.content_type, found.title, found.headers)
        decision = getattr(self._surrogate, name)(mail)
        if isinstance(decision, Answer):
            cache.keep(key, decision.content(), mail.at)
        elif not isinstance(decision, Drop):
            self._asked.note(mail, method, key)
        return decision

    def forget(self, method: str, device: str | None) -> None:
        """Let kept answers go."""
        if method not in self._caches:
            raise ValueError(f"no method keeps answers to {method!r}")
        self._caches[method].clear(device)

    def _learn(self, mail: Mail, decision: Decision | None) -> None:
        """Keep a device's answer to a request whose answers are kept."""
        asked = self._asked.take(mail) if mail.answers else None
        if asked is None or isinstance(decision, Drop | Answer):
            return
        method, key = asked
        cache = self._caches.get(method)
        if cache is not None:
            content = mail.content if decision is None else decision.content(mail.content)
            cache.keep(key, content, mail.at)

    def _verdict(self, mail: Mail, decision: object) -> Verdict:
        sends = tuple(self._surrogate._sends)
        changes = self._ledger.changes()
        if decision is None:
            return Verdict(sends=sends, state=changes)
        if isinstance(decision, Relay):
            content = decision.content(mail.content)
            going = None if content == mail.content else content
            return Verdict(MailAction.RELAY, going, sends=sends, state=changes)
        if isinstance(decision, Answer):
            return Verdict(MailAction.ANSWER, decision.content(), sends=sends, state=changes)
        if isinstance(decision, Drop):
            reason = str(decision.reason)[:MAX_REASON]
            return Verdict(MailAction.DROP, reason=reason, sends=sends, state=changes)
        raise TypeError(
            f"a hook returns Relay, Answer, Drop or None, not {type(decision).__name__}"
        )
