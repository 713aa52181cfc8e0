"""Profiles of clients."""

from __future__ import annotations

from hypothesis import given, strategies as st
from lxml import etree

from lasthop.wire.pap.uaprof import OURS, PROPERTIES, RDF, UAPROF, write_profile

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
