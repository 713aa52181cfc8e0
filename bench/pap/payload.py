"""The pushes that are submitted: service indications that carry their number."""

from __future__ import annotations

import re

BOUNDARY = "next-part"
CONTENT_TYPE = f'multipart/related; boundary={BOUNDARY}; type="application/xml"'

_NUMBER = re.compile(rb"news/([0-9]{8})")


def push(number: int, *, run: str, host: str) -> bytes:
    """Return the body of one submission: unconfirmed, to the client at an IPv4 address."""
    control = (
        '<?xml version="1.0"?>\r\n<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 1.0//EN" '
        '"http://www.wapforum.org/DTD/pap_1.0.dtd">\r\n'
        f'<pap><push-message push-id="{run}-{number}@pi.example.org">'
        f'<address address-value="WAPPUSH={host}/TYPE=IPv4@ppg.example.org"/>'
        '<quality-of-service priority="medium" delivery-method="unconfirmed"/>'
        "</push-message></pap>"
    )
    return (
        f"--{BOUNDARY}\r\nContent-Type: application/xml\r\n\r\n{control}\r\n"
        f"--{BOUNDARY}\r\nContent-Type: text/vnd.wap.si\r\n"
        "X-Wap-Application-Id: x-wap-application:wml.ua\r\n\r\n"
        f"{document(number)}\r\n--{BOUNDARY}--\r\n"
    ).encode()


def document(number: int) -> str:
    """Return the service indication with a number."""
    return (
        '<?xml version="1.0"?>\r\n<!DOCTYPE si PUBLIC "-//WAPFORUM//DTD SI 1.0//EN" '
        '"http://www.wapforum.org/DTD/si.dtd">\r\n'
        f'<si><indication href="http://www.example.com/news/{number:08}" '
        'created="2026-06-25T15:23:15Z" si-expires="2026-06-30T00:00:00Z" '
        'action="signal-medium">You have 4 new messages</indication></si>'
    )


def number_of(datagram: bytes) -> int:
    """Return the number of the push in a datagram; -1 if the datagram is not one of ours."""
    found = _NUMBER.search(datagram)
    return int(found[1]) if found else -1
