"""Surrogates at a desk, and mail for them."""

from __future__ import annotations

from typing import Any

from lasthop.clock import SECOND
from lasthop.surrogate import Content, Mail, Surrogate, Way
from lasthop.surrogate.state import apply
from lasthop.surrogate.surrogate import SurrogateRunner

START = 1_763_200_000 * SECOND
LIMIT = 1 << 20


class Bench:
    """A desk, and the state as the gateway would keep it."""

    def __init__(self, kind: type[Surrogate], limit: int = LIMIT) -> None:
        self._kind = kind
        self._limit = limit
        self._number = 0
        self.entries: dict[str, bytes] = {}
        self.now = START
        self.runner = SurrogateRunner(kind, self.entries, limit=limit)

    def restart(self) -> None:
        """Another worker takes over with what the gateway has."""
        self.runner = SurrogateRunner(self._kind, self.entries, limit=self._limit)

    def mail(self, body: bytes | str = b"", **fields: Any) -> Mail:
        """The next input."""
        self._number += 1
        data = body.encode() if isinstance(body, str) else body
        headers = tuple(fields.pop("headers", {}).items())
        facts: dict[str, Any] = {"way": Way.TO_DEVICE, "device": "phone", "key": self._number}
        content = Content(data, headers=headers)
        return Mail(number=self._number, content=content, at=self.now, **(facts | fields))

    def give(self, body: bytes | str = b"", **fields: Any) -> Any:
        """Let the surrogate act; what it changed is kept."""
        verdict = self.runner.handle(self.mail(body, **fields))
        apply(self.entries, verdict.state)
        return verdict

    def ask(self, method: str, body: str = "", **fields: Any) -> Any:
        """A request."""
        return self.give(body, headers={"method": method}, **fields)

    def reply(self, to: int, body: str, control: str = "", **fields: Any) -> Any:
        """The device answers the request with this key."""
        headers = {"cache-control": control} if control else {}
        return self.give(body, way=Way.FROM_DEVICE, answers=to, headers=headers, **fields)

    @property
    def last(self) -> int:
        """The key of the newest input."""
        return self._number
