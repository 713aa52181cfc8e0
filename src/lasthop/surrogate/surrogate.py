"""The base class of applications' surrogates, and the runner that feeds one its inputs.

A surrogate sees one message at a time, decides, and may change its state and send more messages.
The runner turns that into one verdict, and undoes everything of an input that failed. Nothing here
does I/O: the same runner works in the worker process and in rehearsal.
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
from lasthop.surrogate.state import State, StateLedger

MOST_SENDS = 100
"""The largest number of messages that a surrogate can send for one input: without a limit, a
mistake in one hook floods every device."""

MAX_REASON = 500


class Surrogate:
    """Acts for an application's devices at the gateway. Every message is relayed unless a subclass
    overrides a hook."""

    state: State
    """The surrogate's durable state. It survives restarts, and changes together with the verdict on
    an input."""
    now: Micros = 0
    """The time of the present input, in microseconds since 1970."""
    _sends: list[OutgoingMail]
    _runner: SurrogateRunner

    def to_device(self, mail: Mail) -> Decision | None:
        """Decide about a message that is on its way to a device. None relays it unchanged.

        By default a request goes to the method that is decorated for it, if there is one.
        """
        return self._runner.serve(mail)

    def from_device(self, mail: Mail) -> Decision | None:
        """Decide about a message or an answer that a device has sent. None relays it unchanged."""
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
        """Send an additional message to `device:NAME`, `user:NAME`, `topic:NAME` or `app:`, valid
        for `ttl` seconds. It leaves if the input succeeds, and does not pass a surrogate. Raises
        ValueError or TypeError if an argument is invalid, or if one input sends too many."""
        if len(self._sends) >= MOST_SENDS:
            raise ValueError(
                f"a surrogate cannot send more than {MOST_SENDS} messages for one input"
            )
        if not 0 <= priority <= 9:
            raise ValueError("a priority must be a number from 0 to 9")
        if ttl is not None and ttl <= 0:
            raise ValueError("a ttl must be above 0 seconds")
        content = make_content(
            body, content_type=content_type, title=title, headers=headers, rank=rank
        )
        micros = None if ttl is None else max(1, round(ttl * SECOND))
        self._sends.append(OutgoingMail(str(to), content, priority, micros))

    def forget(self, method: str, *, device: str | None = None) -> None:
        """Drop the cached answers to this method's requests, or only those of `device`. Raises
        ValueError if the method is not cacheable."""
        self._runner.forget(method, device)


class SurrogateRunner:
    """Feeds a surrogate its inputs, and turns what it does into verdicts."""

    def __init__(self, kind: type[Surrogate], entries: dict[str, bytes], *, limit: int) -> None:
        """Create the surrogate; `entries` is its stored state, `limit` the most bytes that it may
        have. Raises TypeError if `__init__` of the class changes the state or sends."""
        self._ledger = StateLedger(entries, limit=limit)
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
            raise TypeError("__init__ may read the state, but must not change it or send messages")
        self._ledger.forget()
        self._surrogate = surrogate

    def _mark(self, name: str, function: Any) -> None:
        method = getattr(function, METHOD, None)
        if method is None:
            return
        if method in self._methods:
            raise TypeError(f"{self._methods[method]} and {name} both handle {method!r}")
        self._methods[method] = name
        terms = getattr(function, TERMS, None)
        if terms is not None:
            self._caches[method] = Cache(self._ledger, method, terms)

    def handle(self, mail: Mail) -> Verdict:
        """Return the surrogate's verdict on one input. An exception of the surrogate is raised, and
        nothing has changed."""
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
        """Answer a request from the cache, or by the method that is decorated for it; None if there
        is none."""
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
        """Drop the cached answers to a method's requests. Raises ValueError if it is not
        cacheable."""
        if method not in self._caches:
            raise ValueError(f"no cacheable method handles {method!r}")
        self._caches[method].clear(device)

    def _learn(self, mail: Mail, decision: Decision | None) -> None:
        """Cache a device's answer to a request whose answers are cached."""
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
            f"a hook must return Relay, Answer, Drop or None, not {type(decision).__name__}"
        )
