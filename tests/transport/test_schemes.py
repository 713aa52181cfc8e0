"""The table of channel kinds is the only one: what else names schemes follows from it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from lasthop.delivery.listener import Listener
from lasthop.runtime.interconnects import Sockets
from lasthop.runtime.settings import Settings
from lasthop.transport.address import parse
from lasthop.transport.schemes import (
    DEFAULT_PORT,
    SCHEMES,
    Form,
    all_schemes,
    secure_schemes,
)
from tests.delivery.conformance.kinds import KINDS, SECURE

ROOT = Path(__file__).parents[2]

EXAMPLES = {
    Form.HOST: "{}://localhost",
    Form.URL: "{}://localhost/hop",
    Form.ROOT: "{}://localhost",
    Form.FILE: "{}:/tmp/socket",
    Form.BLUETOOTH: "{}://00:11:22:33:44:55:4099",
}

UNTRIED = {
    "unix": "a stream as tcp is, and tried where sockets of the machine are",
    "poll+https": "as poll+http and https are",
    "l2cap": "a machine for tests has no Bluetooth",
}
"""Schemes that the conformance tests leave out, and why."""


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_can_be_read_dialled_and_listened_for(name: str) -> None:
    scheme = SCHEMES[name]
    address = parse(EXAMPLES[scheme.form].format(name))
    assert (address.scheme, address.secure, address.lasting) == (
        name,
        scheme.secure,
        scheme.lasting,
    )
    assert (address.every is not None) is scheme.polled
    assert next(iter(inspect.signature(scheme.dial()).parameters)) == "address"
    assert issubclass(scheme.listener(), Listener)


def test_every_scheme_is_held_to_what_channels_promise() -> None:
    assert set(KINDS) | set(UNTRIED) == set(SCHEMES)
    assert {kind for kind in KINDS if SCHEMES[kind].secure} == set(SECURE)


def test_all_of_them_are_documented() -> None:
    page = (ROOT / "docs/how-to/interconnects.md").read_text()
    table = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`([a-z0-9+]+):", table))
    assert named == set(SCHEMES)


def test_the_sdk_for_javascript_dials_what_is_called_so_here() -> None:
    source = (ROOT / "sdk/javascript/src/node/websocket.js").read_text()
    assert set(re.findall(r'scheme !== "(\w+):"', source)) == {
        name for name, scheme in SCHEMES.items() if scheme.form is Form.URL
    }


def test_a_gateway_binds_nothing_that_is_not_in_the_table() -> None:
    assert set(Sockets.__slots__) <= set(SCHEMES)
    assert Settings().tcp.listen.port == DEFAULT_PORT == SCHEMES["tcp"].port


def test_the_table_is_told_in_words() -> None:
    assert secure_schemes() == "tcps, wss, https, poll+https or beeps"
    assert all_schemes() == (
        "tcp, ws, http, poll+http, beep, each with an s for TLS; unix, seqpacket, l2cap"
    )
