"""The formats that `lasthop codec` converts, one small module for each.

To add a format, write a module with a `TextFormat` named `FORMAT` and enter it in `FORMATS`.
"""

from __future__ import annotations

from lasthop.runtime.formats import wbxml, weft, wsp, xebu, xml
from lasthop.runtime.formats.format import TextFormat

FORMATS: dict[str, TextFormat] = {
    "wbxml": wbxml.FORMAT,
    "weft": weft.FORMAT,
    "wsp": wsp.FORMAT,
    "xebu": xebu.FORMAT,
    "xml": xml.FORMAT,
}
"""All formats, by their names on the command line."""
