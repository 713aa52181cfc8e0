"""The error that a BEEP peer causes. A poorly formed frame ends the session without a reply (RFC
3080, 2.2.1.1)."""

from __future__ import annotations

from lasthop.errors import Malformed


class BeepError(Malformed):
    """The peer broke the rules of BEEP; the session is over."""

    code = "beep_error"
