"""Profiles of clients."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from lxml import etree

from lasthop.errors import PapMalformed, TooLarge
from lasthop.wire.pap.uaprof import (
    MAX_PROFILE,
    OURS,
    PROPERTIES,
    RDF,
    UAPROF,
    fits,
    read_profile,
    write_profile,
)

NAMESPACES = {"rdf": RDF, "prf": UAPROF, "our": OURS}


def test_known_names_stand_in_their_components() -> None:
    root = etree.fromstring(
        write_profile({"Push-Accept": "text/plain, text/vnd.wap.si", "Model": "A<1", "mood": "&"})
    )
    paths = {
        "prf:component/rdf:Description[@rdf:ID='HardwarePlatform']/prf:Model": ["A<1"],
        "prf:component/rdf:Description/prf:Push-Accept/rdf:Bag/rdf:li": [
            "text/plain",
            "text/vnd.wap.si",
        ],
        "prf:component/rdf:Description/our:property[@our:name='mood']": ["&"],
    }
    for path, texts in paths.items():
        found = root.findall(f"rdf:Description/{path}", NAMESPACES)
        assert [element.text for element in found] == texts


@given(st.dictionaries(st.sampled_from([*PROPERTIES, "mine", "<&\x00"]) | st.text(), st.text()))
def test_every_profile_is_well_formed_and_complete(capabilities: dict[str, str]) -> None:
    root = etree.fromstring(write_profile(capabilities))
    properties = root.findall("rdf:Description/prf:component/rdf:Description/*", NAMESPACES)
    told = [element for element in properties if not str(element.tag).endswith("type")]
    assert len(told) == len(capabilities)


words = st.text("abcXYZ019/.-", min_size=1)


@given(st.dictionaries(st.sampled_from(sorted(PROPERTIES)), st.lists(words, min_size=1)))
def test_what_is_written_is_read_and_fits_itself(wanted: dict[str, list[str]]) -> None:
    capabilities = {
        name: ", ".join(values) if PROPERTIES[name].bag else values[0]
        for name, values in wanted.items()
    }
    read = read_profile(write_profile(capabilities | {"other": "x"}))
    assert read == {
        name: tuple(values) if PROPERTIES[name].bag else (values[0],)
        for name, values in wanted.items()
    }
    assert fits(read, capabilities)
    assert fits(read, {})


def test_a_profile_of_another_schema_version_is_read() -> None:
    text = f'''<r:RDF xmlns:r="{RDF}" xmlns:p="http://www.wapforum.org/UAPROF/ccppschema-20010430#">
    <r:Description><p:component><r:Description><p:ScreenSize>
      101x80 </p:ScreenSize><p:Unknown>1</p:Unknown></r:Description></p:component>
    </r:Description></r:RDF>'''
    assert read_profile(text.encode()) == {"ScreenSize": ("101x80",)}


@pytest.mark.parametrize(
    "assumed, fitting",
    [
        ({"Model": ("a1",)}, True),
        ({"Model": ("B2",)}, False),
        ({"Push-Accept": ("text/vnd.wap.si",)}, True),
        ({"Push-Accept": ("text/html",)}, False),
        ({"ScreenSize": ("1x1",)}, True),
        ({}, True),
    ],
)
def test_a_client_fits_unless_it_is_known_to_differ(
    assumed: dict[str, tuple[str, ...]], fitting: bool
) -> None:
    capabilities = {"Model": "A1", "Push-Accept": "text/plain, text/vnd.wap.si"}
    assert fits(assumed, capabilities) is fitting


@pytest.mark.parametrize(
    "data, error",
    [
        (b"", PapMalformed),
        (b"<a>", PapMalformed),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', PapMalformed),
        (b"<a>" * 40, TooLarge),
        (b"<a>" + b"<b/>" * 6000 + b"</a>", TooLarge),
        (b" " * (MAX_PROFILE + 1), TooLarge),
    ],
)
def test_what_is_no_profile_is_refused(data: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_profile(data)
