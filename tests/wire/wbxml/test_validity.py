"""Documents that would be useless on a client are told apart."""

import pytest

from lasthop.errors import Malformed
from lasthop.wire.wbxml.languages import SI
from lasthop.wire.wbxml.validity import check
from lasthop.wire.wbxml.xml_reader import read_xml


@pytest.mark.parametrize(
    "text",
    [
        "<si><indication/></si>",
        "<si><indication action='delete' si-id='x'/><info><item class='a'>b</item></info></si>",
        "<sl href='http://example.org/'> </sl>",
        "<co><invalidate-object uri='a'/><invalidate-service uri='b'/></co>",
        "<emn mailbox='mailat:a@example.org' timestamp='2002-02-02T16:30:00Z'/>",
    ],
)
def test_valid_documents_pass(text: str) -> None:
    check(read_xml(text))


@pytest.mark.parametrize(
    "text,message",
    [
        ("<si/>", "too few.*element='si'"),
        ("<si><indication/><indication/></si>", "found='indication indication'"),
        ("<si><info><item class='a'/></info></si>", "wrong child elements"),
        ("<si><indication/><info/></si>", "element='info'"),
        ("<si>x<indication/></si>", "there is text where none is allowed"),
        ("<si><indication><b/></indication></si>", "no such element.*'b'"),
        ("<si><indication><item class='a'/></indication></si>", "element='indication'"),
        ("<si><indication id='x'/></si>", "the element cannot have this attribute.*'id'"),
        ("<si><indication action='shout'/></si>", "not a value.*'shout'"),
        ("<si><indication action='delete'/></si>", "needs an si-id"),
        ("<si><indication created='2024-02-30T00:00:00Z'/></si>", "not a date.*'created'"),
        ("<si><indication created='2024-02-20'/></si>", "YYYY-MM-DDThh:mm:ssZ"),
        ("<si><indication/><info><item>x</item></info></si>", "missing.*'class'"),
        ("<si><indication/><info><item class='a b'/></info></si>", "one word"),
        ("<sl/>", "missing.*'href'"),
        ("<sl href='a'>x</sl>", "text where none"),
        ("<co/>", "too few"),
        ("<emn timestamp='2002-02-02T16:30:00Z'/>", "missing.*'mailbox'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        check(read_xml(text))


def test_the_root_element_must_be_that_of_the_type() -> None:
    with pytest.raises(Malformed, match=r"root element of SI .* must be <si>"):
        check(read_xml("<info><item class='a'/></info>", language=SI))
