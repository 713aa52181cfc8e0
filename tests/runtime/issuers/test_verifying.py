"""Which signed tokens are believed, and what they say."""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from lasthop.clock import DAY, MINUTE, SECOND
from lasthop.core.apps.credentials import Scope
from lasthop.errors import Overloaded, Unauthorized
from lasthop.runtime.issuers.verifying import KEPT, MAX_TOKEN, TrustedIssuers
from tests.runtime.issuers.signing import (
    NOW,
    URL,
    ec_key,
    ed_key,
    fields,
    handmade,
    issuer,
    jwk,
    key_set,
    pem,
    rsa_key,
    some_keys,
    token,
    trusting,
)

S = NOW // SECOND


def refused(trusted: TrustedIssuers, text: str, now: int = NOW) -> str:
    with pytest.raises(Unauthorized) as caught:
        trusted.verify(text, now)
    assert len(str(caught.value)) < 200
    return caught.value.detail


@pytest.mark.parametrize(
    "key, algorithm",
    [(ec_key(), "ES256"), (rsa_key(), "RS256"), (rsa_key(), "PS256"), (ed_key(), "EdDSA")],
)
def test_a_token_says_who_its_user_is(key: Any, algorithm: str) -> None:
    trusted = trusting(keys=key_set(jwk(key, kid="one")))
    found = trusted.verify(token(key, algorithm=algorithm), NOW)
    assert (found.issuer, found.app, found.user, found.roles) == (
        "company",
        "default",
        "anna",
        frozenset(),
    )
    assert found.scopes == {Scope.RULES}
    assert (found.issued_at, found.expires_at) == (NOW, NOW + 300 * SECOND + MINUTE)
    assert trusted.stands(found)


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"aud": "another"}, "another audience"),
        ({"aud": ["another", "third"]}, "another audience"),
        ({"aud": []}, "lacks"),
        ({"aud": None}, "lacks"),
        ({"iss": None}, "does not trust"),
        ({"iss": URL + "/"}, "does not trust"),
        ({"iss": [URL]}, "does not trust"),
        ({"iss": {"a": 1}}, "does not trust"),
        ({"exp": None}, "lacks"),
        ({"iat": None}, "lacks"),
        ({"exp": S - 61}, "expired"),
        ({"exp": S - 60}, "expired"),
        ({"exp": True}, "no time"),
        ({"exp": "soon"}, "no time"),
        ({"exp": -1}, "no time"),
        ({"exp": 2**60}, "no time"),
        ({"exp": 1e300}, "no time"),
        ({"exp": S + 86400 + 61}, "too long"),
        ({"iat": S + 61}, "not valid yet"),
        ({"nbf": S + 61}, "not valid yet"),
        ({"nbf": "now"}, "no time"),
        ({"sub": None}, "no text as 'sub'"),
        ({"sub": ""}, "no text as 'sub'"),
        ({"sub": "x" * 129}, "too long"),
        ({"sub": "\ud800"}, "t"),
    ],
)
def test_what_a_token_says_must_be_right(changes: dict[str, Any], why: str) -> None:
    assert why in refused(trusting(), token(**changes))


@pytest.mark.parametrize(
    "changes", [{"exp": S - 59}, {"iat": S + 60}, {"nbf": S + 60}, {"exp": S + 86400}]
)
def test_the_clocks_may_differ_a_little(changes: dict[str, Any]) -> None:
    assert trusting().verify(token(**changes), NOW).user == "anna"


def test_one_of_several_audiences_is_enough() -> None:
    assert trusting().verify(token(aud=["other", "https://push.example.org"]), NOW).user == "anna"


def test_a_signature_must_be_that_of_the_issuers_key() -> None:
    good = token()
    assert "signature" in refused(trusting(), token(ec_key(1)))
    head, body, signature = good.split(".")
    other = token(sub="root").split(".")[1]
    assert "signature" in refused(trusting(), f"{head}.{other}.{signature}")
    for broken in (f"{head}.{body}.", f"{head}.{body}.AAAA"):
        refused(trusting(), broken)


def test_none_and_shared_secrets_are_no_signatures() -> None:
    trusted = trusting(keys=key_set(jwk(rsa_key(), kid="one")))
    for algorithm in ("none", "None", "NONE", "", None, ["ES256"], "HS256", "ES512"):
        text = handmade({"alg": algorithm, "kid": "one"}, fields())
        assert "algorithm" in refused(trusted, text)
    assert "algorithm" in refused(trusted, handmade({"kid": "one"}, fields()))


def test_a_public_key_is_no_shared_secret() -> None:
    """The classical confusion: the key that everybody knows is used as the secret of HS256."""
    trusted = trusting(keys=key_set(jwk(rsa_key(), kid="one")))
    for secret in (pem(rsa_key()), pem(rsa_key()).strip()):
        head, body, _ = handmade({"alg": "HS256", "kid": "one"}, fields()).split(".")
        made = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
        signature = urlsafe_b64encode(made).rstrip(b"=").decode()
        assert "algorithm" in refused(trusted, f"{head}.{body}.{signature}")


def test_only_algorithms_of_the_settings_count() -> None:
    keys = key_set(jwk(ec_key(), kid="one"), jwk(rsa_key(), kid="two"))
    trusted = trusting(issuer(algorithms=("ES256",)), keys=keys)
    assert trusted.verify(token(), NOW).user == "anna"
    text = token(rsa_key(), algorithm="RS256", header={"kid": "two"})
    assert "algorithm" in refused(trusted, text)


def test_a_key_is_used_with_its_own_algorithm_only() -> None:
    trusted = trusting(keys=key_set(jwk(rsa_key(), kid="one", alg="RS256")))
    assert trusted.verify(token(rsa_key(), algorithm="RS256"), NOW).user == "anna"
    assert "no key" in refused(trusted, token(rsa_key(), algorithm="PS256"))


def test_a_key_that_the_token_brings_along_counts_for_nothing() -> None:
    header = {"jwk": jwk(ec_key(1)), "jku": "http://127.0.0.1:1/", "x5u": "http://127.0.0.1:1/"}
    assert "signature" in refused(trusting(), token(ec_key(1), header=header))


def test_keys_of_one_issuer_say_nothing_about_another() -> None:
    other = issuer(name="other", url="https://other.example.org", prefix="other:")
    trusted = TrustedIssuers([issuer(), other])
    first, second = trusted.issuers
    first.took(some_keys(key_set(jwk(ec_key(), kid="one"))), NOW)
    second.took(some_keys(key_set(jwk(ec_key(1), kid="two"))), NOW)
    assert trusted.verify(token(), NOW).user == "anna"
    at_other = token(ec_key(1), header={"kid": "two"}, iss=other.url)
    assert trusted.verify(at_other, NOW).user == "other:anna"
    # The other issuer says that it is the first, with its own key or with the first one's id.
    assert "no key" in refused(trusted, token(ec_key(1), header={"kid": "two"}))
    assert "signature" in refused(trusted, token(ec_key(1)))
    assert "no key" in refused(trusted, token(iss=other.url))


def test_an_issuer_gives_no_name_of_another_ones_users() -> None:
    other = issuer(name="ci", url="https://ci.example.org", prefix="ci:")
    trusted = trusting(issuer(), other)
    assert trusted.verify(token(iss=other.url, sub="bob"), NOW).user == "ci:bob"
    assert "another issuer's" in refused(trusted, token(sub="ci:bob"))


def test_names_that_paths_cannot_have_are_written_so_that_no_two_are_the_same() -> None:
    names = ["a/b", "a%2Fb", "a.b", "a b", "ä", "repo:org/name:ref:refs/heads/main"]
    found = [trusting().verify(token(sub=name), NOW).user for name in names]
    assert found == [
        "a%2Fb",
        "a%252Fb",
        "a.b",
        "a%20b",
        "%C3%A4",
        "repo:org%2Fname:ref:refs%2Fheads%2Fmain",
    ]


@pytest.mark.parametrize("kind", ["logout+jwt", "secevent+jwt", "dpop+jwt", 7])
def test_tokens_for_something_else_are_no_credentials(kind: Any) -> None:
    assert "type" in refused(trusting(), token(header={"typ": kind}))


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_access_tokens_are_credentials(kind: str) -> None:
    assert trusting().verify(token(header={"typ": kind}), NOW).user == "anna"


def test_what_must_be_understood_and_is_not_is_refused() -> None:
    refused(trusting(), token(header={"crit": ["exp"], "exp": 1}))
    refused(trusting(), token(header={"b64": False, "crit": ["b64"]}))


def test_without_an_id_there_must_be_one_key_that_fits() -> None:
    text = token(header={"kid": None})
    assert trusting().verify(text, NOW).user == "anna"
    two = key_set(jwk(ec_key(), kid="one"), jwk(ec_key(1), kid="two"))
    assert "no key" in refused(trusting(keys=two), text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "eyJ.eyJ.eyJ",
        "eyJhIjoxfQ.W10.x",
        "ü.b.c",
        "e30.e30.e30.e30",
        handmade({"alg": "ES256"}, [1]),
        handmade({"alg": "ES256"}, "x"),
    ],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    refused(trusting(), text)


def test_deep_and_long_tokens_are_refused() -> None:
    deep = urlsafe_b64encode(b"[" * 2900).decode()
    assert "cannot be read" in refused(trusting(), f"{deep}.e30.x")
    inside = urlsafe_b64encode(b'{"iss":"' + URL.encode() + b'","a":' + b"[" * 1500).decode()
    assert "cannot be read" in refused(trusting(), f"e30.{inside}.x")
    assert "too long" in refused(trusting(), token(more="x" * MAX_TOKEN))


@pytest.mark.parametrize(
    "value, roles",
    [
        (["ops", "dev"], {"ops", "dev"}),
        ("ops dev", {"ops", "dev"}),
        (None, set()),
        ([], set()),
    ],
)
def test_roles_are_a_list_or_a_text(value: Any, roles: set[str]) -> None:
    trusted = trusting(issuer(roles_field="groups", admin_roles=("ops",)))
    found = trusted.verify(token(groups=value), NOW)
    assert found.roles == roles
    assert (Scope.ADMIN in found.scopes) == ("ops" in roles)


@pytest.mark.parametrize("value", [7, {"ops": 1}, [1], ["x"] * 201])
def test_roles_that_are_none_are_refused(value: Any) -> None:
    trusted = trusting(issuer(roles_field="groups"))
    assert "roles" in refused(trusted, token(groups=value))


def test_an_issuer_may_let_in_only_who_was_added() -> None:
    assert not trusting().verify(token(), NOW).added_only
    assert trusting(issuer(added_only=True)).verify(token(), NOW).added_only


def test_roles_of_another_field_make_nobody_an_administrator() -> None:
    trusted = trusting(issuer(roles_field="groups", admin_roles=("ops",)))
    assert trusted.verify(token(roles=["ops"]), NOW).scopes == {Scope.RULES}


def test_without_keys_a_caller_is_told_to_come_again() -> None:
    trusted = TrustedIssuers([issuer()])
    trusted.issuers[0].problem = "cannot read /etc/lasthop/company.pem"
    with pytest.raises(Overloaded, match="company could not be fetched") as caught:
        trusted.verify(token(), NOW)
    assert "/etc" not in str(caught.value)  # Strangers need not know.


def test_an_unknown_key_is_waited_for_only_if_it_may_come() -> None:
    trusted = trusting()
    text = token(ec_key(1), header={"kid": "next"})
    assert "no key" in refused(trusted, text)
    trusted.issuers[0].wanted = lambda: True
    with pytest.raises(Overloaded, match="not known yet") as caught:
        trusted.verify(text, NOW)
    assert caught.value.retry_after == 2


def test_old_keys_are_used_for_a_day_and_no_longer() -> None:
    trusted = trusting()
    late = NOW + KEPT
    assert trusted.verify(token(now=late), late).user == "anna"
    with pytest.raises(Overloaded):
        trusted.verify(token(now=late + 1), late + 1)
    assert KEPT == DAY


def test_a_key_that_is_withdrawn_ends_its_tokens() -> None:
    trusted = trusting()
    found = trusted.verify(token(), NOW)
    trusted.issuers[0].took(
        trusting(keys=key_set(jwk(ec_key(1), kid="one"))).issuers[0].keys(NOW), NOW
    )
    assert not trusted.stands(found)


def test_a_curve_has_one_algorithm() -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    trusted = trusting(keys=key_set(jwk(ec_key(), kid="one"), jwk(key, kid="two")))
    text = handmade({"alg": "ES256", "kid": "two"}, fields(), b"\0" * 64)
    assert "no key" in refused(trusted, text)
