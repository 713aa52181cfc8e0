"""How the sender of a request wants its answer to be handed over."""

from __future__ import annotations

import msgspec


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer to a request is to be handed over."""

    target: str = ""
    lane: str = ""
    """The lane of the request. The answers to requests of one lane, with the same callback or with
    none, are handed over in the order of the requests. If the lane is empty, an answer is handed
    over as soon as it comes."""
    callback: str = ""
    """The name of the callback that gets the outcome, also after a restart; empty for a caller that
    waits."""
    gather: bool = False
    """Whether many devices may answer the request."""
    most: int | None = None
    """The number of answers that are enough; None to wait for all."""
