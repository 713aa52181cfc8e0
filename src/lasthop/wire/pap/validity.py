"""Checks that a document is valid by its document type, and if not, where the first fault is.

The rules are taken from the files in `dtd`. libxml2 could apply them itself, but it reports every
fault of a document, and one with ten thousand of them would block the gateway for a second. The
tests check that both always agree.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, cast

from lxml import etree

from lasthop.errors import PapInvalid
from lasthop.wire.pap.versions import Version

_OCCURS = {"once": "", "opt": "?", "mult": "*", "plus": "+"}


class ElementRule(NamedTuple):
    """The children and attributes that one element may have."""

    children: re.Pattern[str]
    """Matches the tags of the children, each with a comma after it."""
    model: str
    """The content model as the document type writes it."""
    attributes: dict[str, frozenset[str]]
    """Allowed values by attribute; empty for any."""
    required: tuple[str, ...]


def check_valid(root: etree._Element, version: Version) -> None:
    """Raise `PapInvalid` at the first element that the document type does not allow."""
    if root.tag != "pap":
        raise PapInvalid("the root element is not pap", line=line_of(root))
    rules = rules_of(version)
    for node in root.iter(etree.Element):
        fault = _fault(node, rules[str(node.tag)])
        if fault:
            raise PapInvalid(f"not valid: {fault}", line=line_of(node))


def line_of(node: etree._Element) -> int | None:
    return cast("int | None", node.sourceline)


def _fault(node: etree._Element, rule: ElementRule) -> str | None:
    tag = str(node.tag)
    found = node.attrib
    for needed in rule.required:
        if needed not in found:
            return f"{tag} has no {needed}"
    for name, value in found.items():
        values = rule.attributes.get(str(name))
        if values is None:
            return f"{tag} cannot have {name!s}"
        if values and value not in values:
            return f"{name!s} is one of {', '.join(sorted(values))}"
    if not rule.children.fullmatch("".join([f"{child.tag}," for child in node])):
        return f"{tag} holds {rule.model}"
    return None


@cache
def document_type(version: Version) -> etree.DTD:
    """Return the document type of a version, from the files beside this one."""
    with (resources.files(__package__) / "dtd" / f"pap_{version}.dtd").open("rb") as file:
        return etree.DTD(file)


@cache
def rules_of(version: Version) -> dict[str, ElementRule]:
    """Return the rules of a document type, by element."""
    # The stubs of lxml do not know that a document type can be examined.
    declared: Any = document_type(version)
    return {element.name: _rule(element) for element in declared.iterelements()}


def _rule(element: Any) -> ElementRule:
    empty = element.type == "empty"
    pattern, model = ("", "nothing") if empty else _content(element.content)
    attributes = list(element.iterattributes())
    return ElementRule(
        re.compile(pattern),
        model,
        {a.name: frozenset(a.itervalues()) for a in attributes},
        tuple(a.name for a in attributes if a.default == "required"),
    )


def _content(content: Any) -> tuple[str, str]:
    """Return a content model as a regular expression and as text."""
    occurs = _OCCURS[content.occur]
    if content.type == "element":
        return f"(?:{content.name},){occurs}", f"{content.name}{occurs}"
    left, left_text = _content(content.left)
    right, right_text = _content(content.right)
    between, between_text = ("|", " or ") if content.type == "or" else ("", ", ")
    return f"(?:{left}{between}{right}){occurs}", f"{left_text}{between_text}{right_text}"
