"""The settings in the page about signed tokens are read, and mean what the page says.

About `docs/how-to/sign-in.md`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lasthop.core.apps.credentials import Scope
from lasthop.errors import InvalidRequest
from lasthop.runtime.settings import load, render, values
from tests.docs.blocks import ROOT, blocks

PAGE = ROOT / "docs/how-to/sign-in.md"


def test_the_issuers_of_the_page_can_be_read(tmp_path: Path) -> None:
    text, people = [block.text for block in blocks(PAGE) if block.language == "toml"]
    file = tmp_path / "lasthop.toml"
    file.write_text(text)
    settings = load(file)
    company, ci = settings.issuers
    assert (company.roles_field, company.admin_roles) == ("groups", ("push-admins",))
    assert (ci.keys, ci.prefix, ci.scopes) == ("/etc/lasthop/ci.pem", "ci:", (Scope.PUBLISH,))
    file.write_text(render(settings))
    assert load(file) == settings
    assert values(settings)["issuers"][1]["prefix"] == "ci:"
    file.write_text(people)
    (company,) = load(file).issuers
    assert (company.client_id, company.asks_for) == ("lasthop", ("openid", "groups"))


GOOD = {"name": "'a'", "url": "'https://a.example.org'", "audience": "'me'"}


def issuers(*changes: dict[str, str]) -> str:
    sections = [
        "[[issuers]]\n" + "\n".join(f"{k} = {v}" for k, v in (GOOD | c).items()) for c in changes
    ]
    return "\n".join(sections)


@pytest.mark.parametrize(
    "text, why",
    [
        (issuers({"url": "'http://login.example.org'"}), "must be https"),
        (issuers({"keys": "'http://login.example.org/keys'"}), "must be https"),
        (issuers({"url": "'https://login.example.org:x'"}), "not a URL"),
        (issuers({"url": "'login.example.org'"}), "https://login.example.org"),
        (issuers({"url": "'https://a@b/'"}), "https://login.example.org"),
        (issuers({"audience": "''"}), "set audience"),
        (issuers({"client_id": "'me'", "public_url": "'https://p.example.org'"}), "must differ"),
        (issuers({"client_id": "'lasthop'"}), "needs public_url"),
        (issuers({"client_id": "'x'", "public_url": "'http://p.example.org'"}), "must be https"),
        (issuers({"client_id": "'x'", "public_url": "'https://p/a'"}), "https://push.example.org"),
        (
            issuers({"client_id": "'x'", "public_url": "'https://p'", "asks_for": "['email']"}),
            'needs "openid"',
        ),
        (issuers({"algorithms": "['HS256']"}), '"RS256"'),
        (issuers({"algorithms": "['none']"}), '"RS256"'),
        (issuers({"algorithms": "[]"}), "algorithms"),
        (issuers({"scopes": "['all']"}), '"publish"'),
        (issuers({"leeway": "'6m'"}), "at most 5m"),
        (issuers({"refresh": "'1s'"}), "at least 30s"),
        (issuers({"admin_roles": "['ops']"}), "needs roles_field"),
        (issuers({"prefix": "'a/'"}), "prefix"),
        (issuers({"secret": "'x'"}), "secret"),
        (issuers({}, {"url": "'https://b.example.org'", "prefix": "'b:'"}), "the name 'a'"),
        (issuers({}, {"name": "'b'", "prefix": "'b:'"}), "the url 'https://a.example.org'"),
        (issuers({}, {"name": "'b'", "url": "'https://b.example.org'"}), "the prefix of users ''"),
        ("issuers = 3", "write [[issuers]]"),
    ],
)
def test_issuers_that_cannot_be_meant_are_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "lasthop.toml"
    file.write_text(text)
    with pytest.raises(InvalidRequest) as caught:
        load(file)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"])
def test_an_issuer_on_this_machine_needs_no_tls(tmp_path: Path, url: str) -> None:
    file = tmp_path / "lasthop.toml"
    file.write_text(issuers({"url": f"'{url}'"}))
    assert load(file).issuers[0].url == url
