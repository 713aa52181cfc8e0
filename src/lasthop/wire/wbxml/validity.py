"""Checks that a document obeys its document type definition, and the one rule of SI beyond it.

A push that fails here fails its transformation: it would be useless on the client.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lasthop.errors import Malformed
from lasthop.wire.wbxml.dates import pack_date
from lasthop.wire.wbxml.document import WbxmlDocument, WbxmlElement
from lasthop.wire.wbxml.language import Language, Model

_NMTOKEN = re.compile(r"[\w.:-]+")


def check(document: WbxmlDocument) -> None:
    """Raise Malformed, with the element and attribute at fault, if a document is invalid."""
    root, language = document.root, document.language
    if root.tag != language.root:
        raise Malformed(
            f"the root element of {language.name} must be <{language.root}>", element=root.tag
        )
    _check(root, language)


def _check(element: WbxmlElement, language: Language) -> None:
    model = language.models.get(element.tag)
    if model is None:
        raise Malformed(f"{language.name} has no such element", element=element.tag)
    _check_attributes(element, model, language)
    tags = []
    for child in element.children:
        if isinstance(child, WbxmlElement):
            _check(child, language)
            tags.append(child.tag)
        elif model.children is not None:
            raise Malformed("there is text where none is allowed", element=element.tag)
    if not holds(model, "".join(f"{tag} " for tag in tags)):
        raise Malformed(
            "an element has the wrong child elements, or too few",
            element=element.tag,
            found=" ".join(tags),
        )


def _check_attributes(element: WbxmlElement, model: Model, language: Language) -> None:
    for name in model.required.difference(element.attributes):
        raise Malformed("an attribute is missing", element=element.tag, attribute=name)
    for name, value in element.attributes.items():
        check_attribute(element.tag, name, value, language)
    if element.attributes.get("action") == "delete" and not element.attributes.get("si-id"):
        raise Malformed("action=delete needs an si-id", element=element.tag, attribute="si-id")


def check_attribute(tag: str, name: str, value: str, language: Language) -> None:
    """Raise Malformed unless an element may have this attribute with this value."""
    model = language.models[tag]
    if name not in model.required and name not in model.optional:
        raise Malformed("the element cannot have this attribute", element=tag, attribute=name)
    choices = model.choices.get(name)
    if choices is not None and value not in choices:
        raise Malformed("not a value of this attribute", element=tag, attribute=name, value=value)
    if name in language.dates:
        _check_date(tag, name, value)
    if tag == "item" and name == "class" and _NMTOKEN.fullmatch(value) is None:
        raise Malformed("a class must be one word", element=tag, attribute=name)


def holds(model: Model, children: str) -> bool:
    """Whether an element may have these children: their tags, each followed by a space."""
    return _matches(model.children or "", children)


def _check_date(tag: str, name: str, value: str) -> None:
    try:
        pack_date(value)
    except ValueError as error:
        raise Malformed(
            "not a date", element=tag, attribute=name, value=value, reason=str(error)
        ) from None


@lru_cache(maxsize=1024)
def _matches(model: str, tags: str) -> bool:
    return re.fullmatch(model, tags) is not None
