"""Writes a document as XML text: one form for every document, with its DOCTYPE, in UTF-8.

Attributes keep their order, text its white space, and an element without content is written as one
tag, so that the text reads back as the same document.
"""

from __future__ import annotations

from lasthop.wire.wbxml.document import WbxmlDocument, WbxmlElement

_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_VALUE = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "\t": "&#9;",
        "\n": "&#10;",
        "\r": "&#13;",
    }
)
"""The characters to escape in a value: white space would be read as blanks (XML 1.0, 3.3.3)."""


def write_xml(document: WbxmlDocument) -> str:
    """Return the XML text of a document, ending in a newline."""
    language = document.language
    out = [
        '<?xml version="1.0"?>\n',
        f'<!DOCTYPE {document.root.tag} PUBLIC "{language.public_id}" "{language.system_id}">\n',
    ]
    _write(document.root, out)
    out.append("\n")
    return "".join(out)


def _write(element: WbxmlElement, out: list[str]) -> None:
    out.append(f"<{element.tag}")
    for name, value in element.attributes.items():
        out.append(f' {name}="{value.translate(_VALUE)}"')
    if not element.children:
        out.append("/>")
        return
    out.append(">")
    for child in element.children:
        if isinstance(child, str):
            out.append(child.translate(_TEXT))
        else:
            _write(child, out)
    out.append(f"</{element.tag}>")
