"""The rules of 5.1.2.1.2 for X-Wap-Application-Id, one by one."""

import pytest

from lasthop.errors import Malformed
from lasthop.wire.wsp.applications import (
    WML_UA,
    name_of,
    over_the_air,
    parse_application,
    resource_identifier,
)
from lasthop.wire.wsp.registry import APPLICATIONS, CODES


@pytest.mark.parametrize(
    "text,application",
    [
        ("x-wap-application:wml.ua", 2),
        ("X-WAP-Application:wml.ua", 2),
        ("urn:x-wap-application:mms.ua", 4),
        ("wml.ua", 2),
        ("x-oma-application:ulp.ua", 16),
        ("x-wap-application:push.sia", 1),
        ("x-wap-application:wml.ua;app-encoding=99", 2),
        ("x-wap-application:wml.ua; APP-encoding = 99", 2),
    ],
)
def test_a_registered_uri_becomes_its_number_whatever_number_came_with_it(
    text: str, application: int
) -> None:
    assert parse_application(text) == application


def test_a_uri_without_a_number_stays() -> None:
    assert parse_application("http://a.example/b;c=d") == "http://a.example/b;c=d"


def test_a_number_replaces_a_uri_that_is_not_registered() -> None:
    assert parse_application("http://a.example/b;app-encoding=99") == 99


@pytest.mark.parametrize("text,number", [("2", 2), ("36866", 0x9002), ("0x9002", 0x9002)])
def test_a_number_alone_stays(text: str, number: int) -> None:
    assert parse_application(text) == number


@pytest.mark.parametrize("text", ["", "a b", "x:y z", "http://a/;app-encoding=z", "99999999999"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse_application(text)


def test_a_missing_header_means_the_wml_user_agent_unless_the_client_assumes_it() -> None:
    assert over_the_air(None) == WML_UA
    assert over_the_air(None, client_default=4) == WML_UA
    assert over_the_air(None, client_default=WML_UA) is None


def test_a_header_that_names_the_clients_default_may_go() -> None:
    assert over_the_air("x-wap-application:mms.ua", client_default=4) is None
    assert over_the_air("x-wap-application:mms.ua", client_default=WML_UA) == 4


def test_a_feature_tag_names_registered_applications_without_their_namespace() -> None:
    assert resource_identifier(4) == "mms.ua"
    assert resource_identifier("urn:example:my.ua") == "urn:example:my.ua"


@pytest.mark.parametrize("code", APPLICATIONS)
def test_every_registered_number_comes_back_from_its_name(code: int) -> None:
    assert parse_application(name_of(code)) == code


def test_the_lowest_of_two_numbers_for_a_name_wins() -> None:
    assert APPLICATIONS[0x904B] == APPLICATIONS[1]
    assert CODES[APPLICATIONS[1]] == 1
    assert name_of(0x904B) == str(0x904B)
