"""Headers and PDUs for Hypothesis, in the one form that they come back in."""

import base64

from hypothesis import strategies as st

from lasthop.wire.charsets import NAMES
from lasthop.wire.wsp.addresses import Address
from lasthop.wire.wsp.capabilities import Capabilities, WspOptions
from lasthop.wire.wsp.content_types import CONTENT_TYPES
from lasthop.wire.wsp.fields import FIELDS
from lasthop.wire.wsp.headers import Field, Header, RawHeader
from lasthop.wire.wsp.httpdate import LAST, format_http_date
from lasthop.wire.wsp.languages import LANGUAGES
from lasthop.wire.wsp.parameters import join_parameters
from lasthop.wire.wsp.pdus import (
    Connect,
    ConnectReply,
    Disconnect,
    Pdu,
    Push,
    Redirect,
    Reply,
    Resume,
    Suspend,
)
from lasthop.wire.wsp.primitives import with_length
from lasthop.wire.wsp.registry import APPLICATIONS, CODES
from lasthop.wire.wsp.sir import Sir
from lasthop.wire.wsp.values import KINDS

versions = st.sampled_from([(1, minor) for minor in range(1, 7)])
numbers = st.integers(0, 2**64)
uintvars = st.integers(0, 2**32 - 1)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=40).map(
    str.strip
)
tokens = st.from_regex(r"\A[a-z][a-z0-9-]{0,9}\Z")
dates = st.integers(0, LAST).map(format_http_date)
uris = st.builds("http://{}/{}".format, tokens, texts.map(lambda text: text.replace(" ", "")))

parameters = st.one_of(
    st.tuples(tokens.map("x-".__add__), texts),
    st.tuples(st.just("charset"), st.sampled_from(sorted(NAMES.values()))),
    st.tuples(st.sampled_from(["name", "filename", "start", "comment"]), texts),
    st.tuples(st.just("size"), numbers.map(str)),
    st.tuples(st.just("creation-date"), dates),
    st.tuples(st.sampled_from(["x-wap-0x30", "x-wap-0x1234"]), texts),
)

media = st.one_of(
    st.sampled_from([name for name, _ in CONTENT_TYPES.values() if ";" not in name]),
    st.builds("{}/{}".format, tokens, tokens),
    st.sampled_from(["x-wap-type/0x60", "x-wap-type/0x4321"]),
)

content_types = st.builds(
    join_parameters, media, st.lists(parameters, max_size=3, unique_by=lambda pair: pair[0])
)

weights = st.sampled_from(["", "; q=0", "; q=0.5", "; q=0.01", "; q=0.333"])


def _weighted(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("{}{}".format, values, weights)


applications = st.one_of(
    st.sampled_from(
        sorted(urn for code, urn in APPLICATIONS.items() if CODES[urn.lower()] == code)
    ),
    st.integers(0x10000, 2**32 - 1).map(str),
    st.builds("http://{}/{}".format, tokens, tokens),
)

charsets = st.sampled_from(["*", *sorted(NAMES.values()), "x-mars"])
fields = st.sampled_from(sorted({name for name, _ in FIELDS.values()}))
basic = st.builds(
    lambda user, word: "Basic " + base64.b64encode(f"{user}:{word}".encode()).decode(),
    tokens,
    texts,
)
unquoted = texts.map(lambda text: text.replace('"', "").replace("\\", ""))

VALUES: dict[str, st.SearchStrategy[str]] = {
    "Accept": content_types.filter(lambda text: "," not in text),
    "Accept-Charset": _weighted(charsets),
    "Accept-Encoding": _weighted(st.sampled_from(["gzip", "compress", "deflate", "*", "br"])),
    "Accept-Language": _weighted(st.sampled_from([*sorted(LANGUAGES.values()), "en-gb"])),
    "Accept-Ranges": st.sampled_from(["none", "bytes", "lines"]),
    "Allow": st.sampled_from(["GET", "POST", "PUT", "BREW"]),
    "Authorization": st.one_of(basic, st.just("Bearer x")),
    "Cache-Control": st.one_of(
        st.sampled_from(["no-cache", "no-transform", "public", "x-new", 'no-cache="ETag"']),
        st.builds("{}={}".format, st.sampled_from(["max-age", "s-maxage", "min-fresh"]), numbers),
    ),
    "Content-Disposition": st.builds(
        join_parameters,
        st.sampled_from(["form-data", "attachment", "inline", "other"]),
        st.lists(parameters, max_size=3, unique_by=lambda pair: pair[0]),
    ),
    "Content-Language": st.sampled_from(sorted(LANGUAGES.values())),
    "Content-MD5": st.binary(min_size=16, max_size=16).map(
        lambda digest: base64.b64encode(digest).decode()
    ),
    "Content-Range": st.builds("bytes {}-/{}".format, uintvars, st.one_of(uintvars, st.just("*"))),
    "Content-Type": content_types,
    "Content-ID": unquoted.map("<{}>".format),
    "Encoding-Version": st.sampled_from(["1.2", "1.14", "7", "16 1.2", "x"]),
    "Expect": st.just("100-continue"),
    "If-Range": st.one_of(dates, tokens),
    "Push-Flag": st.integers(0, 127).map(str),
    "Range": st.one_of(
        st.builds("bytes={}-{}".format, uintvars, st.one_of(uintvars, st.just(""))),
        uintvars.map("bytes=-{}".format),
    ),
    "Retry-After": st.one_of(dates, numbers.map(str)),
    "Trailer": fields,
    "Vary": st.one_of(fields, tokens),
    "Warning": st.one_of(
        st.integers(0, 999).map(str), st.builds('{} {} "{}"'.format, uintvars, tokens, unquoted)
    ),
    "X-Wap-Application-Id": applications,
    "Accept-Application": st.one_of(st.just("*"), applications),
    **{name: dates for name in KINDS if name.endswith(("-Since", "Date", "Modified", "Tod"))},
    **dict.fromkeys(("Expires",), dates),
    **dict.fromkeys(
        ("Age", "Content-Length", "Max-Forwards", "Bearer-Indication"), numbers.map(str)
    ),
}
"""Fields whose values have a grammar; the others take any text without a comma."""

plain = texts.map(lambda text: text.replace(",", ""))

known = st.sampled_from(sorted({name for name, _ in FIELDS.values()})).flatmap(
    lambda name: st.builds(Header, st.just(name), VALUES.get(name, plain))
)
own = st.builds(Header, tokens.map("X-".__add__), texts)

raw = st.builds(
    RawHeader,
    st.integers(0, 255),
    st.sampled_from([0x4B, 0x60, 0x7F]),
    st.one_of(
        st.integers(0x80, 0xFF).map(lambda octet: bytes((octet,))),
        st.binary(max_size=300).map(with_length),
        tokens.map(lambda text: text.encode() + b"\0"),
    ),
)

header: st.SearchStrategy[Field] = st.one_of(known, own, raw)
headers = st.lists(header, max_size=6).map(tuple)

addresses = st.lists(
    st.builds(
        Address,
        st.binary(max_size=63),
        st.one_of(st.none(), st.integers(0, 0xFFFF)),
        st.one_of(st.none(), st.integers(0, 0xFF)),
    ),
    max_size=3,
).map(tuple)

_octets = st.one_of(st.none(), st.integers(0, 255))
_sizes = st.one_of(st.none(), uintvars)
capabilities = st.builds(
    Capabilities,
    client_sdu_size=_sizes,
    server_sdu_size=_sizes,
    options=st.one_of(st.none(), st.integers(0, 255).map(WspOptions)),
    method_outstanding=_octets,
    push_outstanding=_octets,
    client_message_size=_sizes,
    server_message_size=_sizes,
    others=st.lists(st.binary(max_size=5).map(lambda rest: b"\x86" + rest), max_size=2).map(tuple),
)

pdus: st.SearchStrategy[Pdu] = st.one_of(
    st.builds(Push, content_types, headers, st.binary(max_size=50), st.booleans()),
    st.builds(Connect, capabilities, headers),
    st.builds(ConnectReply, uintvars, capabilities, headers),
    st.builds(Redirect, addresses, st.booleans(), st.booleans()),
    st.builds(Reply, st.integers(0, 255), content_types, headers, st.binary(max_size=50)),
    st.builds(Disconnect, uintvars),
    st.builds(Suspend, uintvars),
    st.builds(Resume, uintvars, capabilities, headers),
)

_applications = st.lists(
    st.one_of(
        st.integers(0, 2**32 - 1).filter(lambda number: number != 0x2F),
        st.builds("http://{}/".format, tokens),
    ),
    max_size=3,
).map(tuple)

sirs = st.one_of(
    st.builds(Sir, applications=_applications, wsp_contacts=addresses),
    st.builds(
        Sir,
        version=st.just(1),
        applications=_applications,
        wsp_contacts=addresses,
        other_contacts=addresses,
        protocol_options=st.lists(uintvars, max_size=3).map(tuple),
        provisioning_url=st.builds("http://{}/".format, tokens),
        capability_tags=st.lists(st.binary(min_size=4, max_size=4), max_size=3).map(tuple),
    ),
)
