"""Our own check of validity agrees with libxml2, document by document."""

import pytest
from hypothesis import given, strategies as st
from lxml import etree

from lasthop.errors import PapInvalid
from lasthop.wire.pap.documents import Document
from lasthop.wire.pap.layout import ATTRIBUTES, TAGS
from lasthop.wire.pap.validity import check_valid, document_type, rules_of
from lasthop.wire.pap.versions import VERSIONS, Version
from lasthop.wire.pap.writer import write_document
from tests.wire.pap import strategies

tags = st.sampled_from(sorted(TAGS))
names = st.sampled_from(sorted(ATTRIBUTES))
values = st.sampled_from(["", "x", "true", "high", "oneshot", "all", "delivered", "1000"])
attributes = st.lists(st.tuples(names, values), max_size=4)


@st.composite
def trees(draw: st.DrawFn) -> etree._Element:
    """Any tree of PAP's vocabulary: mostly not valid."""
    root = etree.Element("pap")
    nodes = [root]
    for _ in range(draw(st.integers(0, 6))):
        parent = draw(st.sampled_from(nodes))
        node = etree.SubElement(parent, draw(tags))
        for name, value in draw(attributes):
            node.set(name, value)
        nodes.append(node)
    return root


def agree(root: etree._Element, version: Version) -> bool:
    valid = document_type(version).validate(root)
    try:
        check_valid(root, version)
    except PapInvalid:
        assert not valid
    else:
        assert valid
    return valid


@given(trees(), strategies.versions)
def test_trees_of_all_kinds(root: etree._Element, version: Version) -> None:
    agree(root, version)


@given(strategies.documents(), strategies.versions, st.data())
def test_valid_documents_with_something_changed(
    document: Document, version: Version, data: st.DataObject
) -> None:
    root = etree.fromstring(write_document(document))
    assert agree(root, document.version)
    # Under another version, too.
    agree(root, version)
    node = data.draw(st.sampled_from(list(root.iter(etree.Element))))
    match data.draw(st.integers(0, 4)):
        case 0:
            node.set(data.draw(names), data.draw(values))
        case 1 if node.attrib:
            del node.attrib[data.draw(st.sampled_from(sorted(map(str, node.attrib))))]
        case 2:
            etree.SubElement(node, data.draw(tags))
        case 3 if len(node):
            node.remove(node[0])
        case _:
            node[:] = list(reversed(node))
    agree(root, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_rules_are_those_of_the_file(version: Version) -> None:
    rules = rules_of(version)
    push = rules["push-message"]
    assert push.model == "address+, quality-of-service?"
    assert push.required == ("push-id",)
    assert rules["address"].model == "nothing"
    assert len(rules["pap"].model.split(" or ")) == 11
    methods = rules["quality-of-service"].attributes["delivery-method"]
    assert ("oneshot" in methods) == (version >= Version.V2_1)


def test_the_root_is_pap() -> None:
    with pytest.raises(PapInvalid, match="the root element is not pap"):
        check_valid(etree.Element("address"), Version.V2_1)
