"""Table 7.9: the code that must be loaded to read and write a format.

Only the implementation's own modules are counted, in a fresh interpreter: Python modules as
compiled code, and compressed as they would be transferred; C modules as the size of their library,
expat's included. Other modules of Python (regular expressions, dates) are used by all and left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final, NamedTuple

PACKAGES: Final = {
    "XAS (XML)": ("lasthop_xml.xas.xmlparse", "lasthop_xml.xas.xmlserialize"),
    "Xebu": ("lasthop_xml.xebu.encoder", "lasthop_xml.xebu.decoder"),
    "XebuS": (
        "lasthop_xml.xebu.omission.encoder",
        "lasthop_xml.xebu.omission.decoder",
        "lasthop_xml.relaxng.schema",
    ),
    "Weft": ("lasthop_xml.weft.session",),
    "ElementTree": ("xml.etree.ElementTree", "pyexpat", "_elementtree"),
    "minidom": ("xml.dom.minidom", "xml.dom.expatbuilder"),
    "lxml": ("lxml.etree",),
}

_PROGRAM: Final = """
import importlib, json, marshal, os, sys, zlib
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(name)
code = packed = library = modules = 0
for name in set(sys.modules) - before:
    if name.split(".")[0] not in {"lasthop_xml", "lxml", "xml", "pyexpat", "_elementtree"}:
        continue
    file = getattr(sys.modules[name], "__file__", None)
    if file is None:
        continue
    modules += 1
    if file.endswith(".py"):
        compiled = marshal.dumps(compile(open(file, "rb").read(), name, "exec", optimize=2))
        code += len(compiled)
        packed += len(zlib.compress(compiled, 9))
    else:
        library += os.path.getsize(file)
print(json.dumps([modules, code, packed, library]))
"""


class Row(NamedTuple):
    """The loaded modules of one format; sizes are in kB."""

    format: str
    modules: int
    code: float
    packed: float
    library: float


def measure() -> list[Row]:
    rows = []
    for name, modules in PACKAGES.items():
        said = subprocess.run(
            [sys.executable, "-c", _PROGRAM, *modules], capture_output=True, check=True
        ).stdout
        count, code, packed, library = json.loads(said)
        rows.append(Row(name, count, code / 1000, packed / 1000, library / 1000))
    return rows
