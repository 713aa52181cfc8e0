"""All settings of a gateway: from a TOML file, then LASTHOP_* variables, then options.

Each setting is a typed field with its explanation; `lasthop config` prints them all, and
`lasthop.example.toml` is that output. An unknown name is an error that suggests the one that was
probably meant.

    listeners, publishers, capacity, operators, apps   the sections
    rights, issuers, section_lists                     lists of sections
    gateway                                            all sections together
    naming, converting, reading, writing               from a file and variables, and back
"""

from __future__ import annotations

from lasthop.runtime.settings.capacity import Ota, Retention
from lasthop.runtime.settings.gateway import Settings, listed
from lasthop.runtime.settings.listeners import Tls
from lasthop.runtime.settings.naming import names, variable
from lasthop.runtime.settings.reading import load
from lasthop.runtime.settings.writing import render, values

__all__ = [
    "Ota",
    "Retention",
    "Settings",
    "Tls",
    "listed",
    "load",
    "names",
    "render",
    "values",
    "variable",
]
