"""What the sender of a request expects of its answer."""

from __future__ import annotations

import msgspec


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer to a request is to be handed over."""

    target: str = ""
    lane: str = ""
    """Requests of one lane, with the same callback or with none, get their answers in the order of
    the requests; empty: as the answers come."""
    callback: str = ""
    """The name of the callback that gets the outcome, also after a restart; empty for a caller that
    waits."""
    gather: bool = False
    """Whether many devices may answer the request."""
    most: int | None = None
    """The number of answers that are enough; None: all of them."""
