"""Each side gets the type that it likes best, and need not be told so."""

from lasthop.message import DEFAULT_CONTENT_TYPE
from lasthop.wire.hop.accept import choose, content_type, preferred
from lasthop.wire.hop.frames import Headers

ACCEPT = ("application/cbor", "application/json", "text/plain")


def test_the_first_type_is_the_favourite() -> None:
    assert preferred(ACCEPT) == "application/cbor"
    assert preferred(()) == DEFAULT_CONTENT_TYPE


def test_the_receivers_order_decides() -> None:
    assert choose(["text/plain", "application/json"], ACCEPT) == "application/json"
    assert choose(["text/html"], ACCEPT) is None
    assert choose(["text/html", "text/plain"], ()) == "text/html"
    assert choose([], ()) is None


def test_a_message_without_a_type_has_the_favourite() -> None:
    assert content_type(None, ACCEPT) == "application/cbor"
    assert content_type(Headers(title="t"), ACCEPT) == "application/cbor"
    assert content_type(Headers(content_type="text/html"), ACCEPT) == "text/html"
