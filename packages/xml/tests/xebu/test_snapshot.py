"""Token state that was saved goes on as if nothing had happened."""

import msgspec
import pytest

from lasthop_xml.xas.typed import typed_sequence
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.errors import XebuFormatError, XebuStateError
from lasthop_xml.xebu.policies import POLICIES
from lasthop_xml.xebu.snapshot import (
    MAX_SNAPSHOT,
    restore_decoder,
    restore_encoder,
    save_decoder,
    save_encoder,
)
from lasthop_xml.xebu.tokens import Mode
from tests.xas.documents import Documents, exact
from tests.xebu.sessions import Anyhow, in_step


@pytest.mark.parametrize("policy", POLICIES)
def test_a_session_survives_restarts_between_any_two_messages(policy: str) -> None:
    source = Documents(3)
    kept = Encoder(policy=POLICIES[policy])
    encoder, decoder = Encoder(policy=POLICIES[policy]), Decoder()
    for number in range(60):
        events = list(typed_sequence(parse_xml(serialize_xml(source.next()))))
        message = encoder.encode(events)
        # The very bytes that an encoder without restarts would have sent: order of use included.
        assert message == kept.encode(events)
        assert exact(decoder.decode(message)) == exact(events)
        encoder = restore_encoder(save_encoder(encoder))
        decoder = restore_decoder(save_decoder(decoder))
        assert in_step(encoder, decoder)
        assert encoder.messages == number + 1


def test_modes_and_epochs_are_kept() -> None:
    encoder, decoder = Encoder(Mode.ITEM), Decoder()
    encoder.reset()
    decoder.reset()
    assert restore_encoder(save_encoder(encoder)).mode is Mode.ITEM
    assert restore_encoder(save_encoder(encoder)).epoch == 1
    assert restore_decoder(save_decoder(decoder)).epoch == 1


def test_a_poisoned_state_is_not_kept() -> None:
    decoder = Decoder()
    with pytest.raises(XebuFormatError):
        decoder.decode(b"x")
    with pytest.raises(XebuStateError):
        save_decoder(decoder)


FIELDS = (
    *("version", "epoch", "messages", "namespaces", "names", "values", "texts"),
    *("mode", "policy", "orders"),
)


def state(**changes: object) -> bytes:
    """A snapshot with something wrong in it."""
    fields = msgspec.msgpack.decode(save_encoder(Encoder()))
    for name, value in changes.items():
        fields[FIELDS.index(name)] = value
    return msgspec.msgpack.encode(fields)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc0",
        b"x" * 100,
        b"x" * (MAX_SNAPSHOT + 1),
        state(version=2),
        state(epoch=-1),
        state(epoch="x"),
        state(texts=[]),
        state(texts=["\x00"] + [None] * 255),
        state(texts=["x", "x"] + [None] * 254),
        state(names=[["", "no name"]] + [None] * 255),
        state(values=[["", "a", "\ufffe"]] + [None] * 255),
        state(mode=3),
        state(policy="other"),
        state(orders=[]),
        state(orders=[[[1]]] * 4),
        state(orders=[[list(range(255))]] * 4),
        state(policy="split", orders=[[[], [], [], []]] * 4),
        state(policy="split", orders=[[list(range(256)), [], [], [1]]] * 4),
        state(policy="split", orders=[[[], list(range(256)), [0] * 256, [1]]] * 4),
    ],
)
def test_a_damaged_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(XebuStateError):
        restore_encoder(data)


def test_a_decoder_checks_what_goes_into_events() -> None:
    for data in (b"", state(texts=["\x00"] + [None] * 255), state(names=[["", "a b"]] * 256)):
        with pytest.raises(XebuStateError):
            restore_decoder(data)


def test_a_policy_that_nobody_knows_cannot_be_restored() -> None:
    with pytest.raises(XebuStateError):
        restore_encoder(save_encoder(Encoder(policy=lambda: Anyhow(1, 5))))
    with pytest.raises(XebuStateError):
        restore_encoder(save_decoder(Decoder()))
