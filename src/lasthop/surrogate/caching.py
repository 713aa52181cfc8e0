"""Answers kept at the gateway: which requests may be answered with them, and for how long.

An answer says how long it is valid in its header `cache-control`: `max-age=60`,
`stale-while-away=3600`, `no-store`. Without the header, the method's `ttl` counts.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.surrogate.mail import Content, Mail
from lasthop.surrogate.policies import CachePolicy, Entry, Lru
from lasthop.surrogate.state import State, StateLedger

F = TypeVar("F", bound=Callable[..., Any])

MOST_ASKED = 1000
"""The largest number of requests that wait for an answer to be cached: requests to devices that
never answer must not fill the state."""

METHOD, TERMS = "__surrogate_method__", "__surrogate_cache__"


@dataclass(frozen=True, slots=True)
class CacheTerms:
    """How the answers to a method's requests are cached."""

    ttl: float | None
    key: Callable[[Mail], bytes | str] | None
    policy: CachePolicy
    shared: bool


def request(name: str) -> Callable[[F], F]:
    """Decorate a method to handle the requests whose header `method` has this value."""

    def mark(function: F) -> F:
        setattr(function, METHOD, name)
        return function

    return mark


def cacheable(
    *,
    ttl: float | None = None,
    key: Callable[[Mail], bytes | str] | None = None,
    policy: CachePolicy | None = None,
    shared: bool = False,
) -> Callable[[F], F]:
    """Decorate a method so that answers to its requests are kept and used again.

    - `ttl`: seconds that an answer is valid if it does not say so itself; without `ttl` only
      answers that do are kept.
    - `key`: returns what tells two requests apart; by default the body.
    - `policy`: which answers are used and which are evicted first; by default `Lru()`.
    - `shared`: whether an answer of one device serves every device of the app.

    The method handles the requests of its own name, unless `request` gives another.
    """
    terms = CacheTerms(ttl, key, policy or Lru(), shared)

    def mark(function: F) -> F:
        setattr(function, TERMS, terms)
        if not hasattr(function, METHOD):
            setattr(function, METHOD, function.__name__)
        return function

    return mark


@dataclass(frozen=True, slots=True)
class Freshness:
    """What an answer's `cache-control` says of its validity. Unknown and malformed directives are
    ignored."""

    store: bool = True
    max_age: int | None = None
    stale: int | None = None

    @classmethod
    def of(cls, content: Content) -> Freshness:
        """Return the validity that the header `cache-control` of an answer states."""
        store, ages = True, dict[str, int]()
        for name, value in content.headers:
            if name.lower() != "cache-control":
                continue
            for word in value.lower().split(","):
                directive, _, number = word.strip().partition("=")
                if directive == "no-store":
                    store = False
                elif number.isascii() and number.isdigit() and len(number) < 10:
                    ages[directive] = int(number)
        return cls(store, ages.get("max-age"), ages.get("stale-while-away"))


class Cache:
    """The cached answers to one method's requests, in the surrogate's state."""

    def __init__(self, ledger: StateLedger, method: str, terms: CacheTerms) -> None:
        self._terms = terms
        self._policy = terms.policy
        self._answers = State(ledger, f"c{method}\x1f")
        self._entries = State(ledger, f"e{method}\x1f")
        self._order: list[tuple[int, str]] | None = None
        """Entries by worth, the least first; an outdated one is recognised when it is taken out."""
        self._count = 0

    def key_of(self, mail: Mail) -> str:
        """Return the key under which the answer to a request is cached."""
        told = mail.body if self._terms.key is None else self._terms.key(mail)
        digest = hashlib.blake2b(told.encode() if isinstance(told, str) else told, digest_size=16)
        return f"{'' if self._terms.shared else mail.device}\x1f{digest.hexdigest()}"

    def find(self, key: str, mail: Mail) -> Content | None:
        """Return a cached answer that may be used for this request; None if there is none."""
        if key not in self._entries:
            return None
        entry = self._entry(key)
        if self._policy.over(entry, now=mail.at):
            self._remove(key)
            return None
        if not self._policy.serves(entry, now=mail.at, online=mail.online):
            return None
        entry.used = mail.at
        self._put_entry(key, entry)
        return msgspec.convert(self._answers[key], Content)

    def keep(self, key: str, content: Content, now: Micros) -> bool:
        """Cache an answer, if it allows that and there is room; return whether it was."""
        fresh = Freshness.of(content)
        age = fresh.max_age if fresh.max_age is not None else self._terms.ttl
        if not fresh.store or age is None:
            return False
        if not self._answers.has_room(len(content.body) + 1000):
            return False
        expires = now + round(age * SECOND)
        stale = 0 if fresh.stale is None else expires + fresh.stale * SECOND
        self._load()
        self._count += key not in self._entries
        self._answers[key] = msgspec.to_builtins(content, builtin_types=(bytes,))
        self._put_entry(key, Entry(now, expires, stale, now))
        while self._count > self._policy.capacity:
            self._evict()
        return True

    def clear(self, device: str | None) -> None:
        """Drop all cached answers, or those of one device."""
        for key in list(self._entries):
            if device is None or key.startswith(f"{device}\x1f"):
                self._remove(key)

    def forget(self) -> None:
        """Read the state again before the next use: the last input failed, and its changes were
        undone."""
        self._order = None

    def _entry(self, key: str) -> Entry:
        return msgspec.convert(self._entries[key], Entry)

    def _put_entry(self, key: str, entry: Entry) -> None:
        self._entries[key] = msgspec.to_builtins(entry)
        if self._order is not None:
            heapq.heappush(self._order, (self._policy.worth(entry), key))
            if len(self._order) > 2 * self._count + 100:
                self._order = None

    def _remove(self, key: str) -> None:
        self._load()
        del self._answers[key], self._entries[key]
        self._count -= 1

    def _load(self) -> None:
        if self._order is None:
            keys = list(self._entries)
            self._order = [(self._policy.worth(self._entry(key)), key) for key in keys]
            heapq.heapify(self._order)
            self._count = len(keys)

    def _evict(self) -> None:
        self._load()
        assert self._order is not None
        worth, key = heapq.heappop(self._order)
        if key in self._entries and self._policy.worth(self._entry(key)) == worth:
            self._remove(key)


class ForwardedRequests:
    """Requests that were sent on to devices, whose answers will be cached when they come."""

    def __init__(self, ledger: StateLedger) -> None:
        self._state = State(ledger, "a")
        self._names: list[str] | None = None

    def note(self, mail: Mail, method: str, key: str) -> None:
        """Remember a request that goes on to its device."""
        if self._names is None:
            self._names = list(self._state)  # Message keys ascend with time, and so do these names.
        name = _asked(mail.key, mail.device)
        self._state[name] = [method, key]
        heapq.heappush(self._names, name)
        while len(self._names) > MOST_ASKED:
            oldest = heapq.heappop(self._names)
            if oldest in self._state:
                del self._state[oldest]

    def take(self, mail: Mail) -> tuple[str, str] | None:
        """Return the method and cache key of the request that a device's message answers, and
        forget the request; None if it is unknown."""
        name = _asked(mail.answers, mail.device)
        if name not in self._state:
            return None
        method, key = self._state[name]
        del self._state[name]
        return method, key

    def forget(self) -> None:
        """Read the state again before the next use: the last input failed, and its changes were
        undone."""
        self._names = None


def _asked(key: int, device: str) -> str:
    return f"{key:016x}\x1f{device}"
