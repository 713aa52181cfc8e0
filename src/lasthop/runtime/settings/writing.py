"""Writes the settings as a commented TOML file, or as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from textwrap import wrap
from typing import Any, get_type_hints

import msgspec

from lasthop.runtime.settings.apps import (
    NAMED,
    PLACEHOLDERS,
    AppBehaviour,
    SurrogateSettings,
)
from lasthop.runtime.settings.converting import Values
from lasthop.runtime.settings.gateway import Settings
from lasthop.runtime.settings.naming import (
    IN_SECTIONS,
    allowed_words,
    described,
    is_section,
    names,
    variable,
)
from lasthop.runtime.settings.reading import nested
from lasthop.runtime.settings.section_lists import EXAMPLES, LISTED
from lasthop.runtime.settings.short_messages import DefaultRouteSettings, SmscSettings

WIDTH = 98

SPECIMENS: Mapping[str, msgspec.Struct] = {
    "behaviours": AppBehaviour(),
    "surrogates": SurrogateSettings(place="package.module:Class"),
    "smsc": SmscSettings(url="smpp://127.0.0.1:2775"),
    "default_routes": DefaultRouteSettings(addresses=("PLMN:+1555*",), who=("shop",)),
}
"""An example section, with the defaults, for each part of the settings whose sections have
names."""

_HEAD = """\
# Settings of a lasthop gateway, with their defaults: `lasthop up --config FILE`.
# A variable overrides what is here: {variable} for http.listen, and so on.
# Times end in d, h, m, s or ms; sizes in B, KiB, MiB or GiB.
"""


def render(settings: Settings) -> str:
    """Return the settings as a TOML file with comments; reading it gives the same settings."""
    hints = get_type_hints(Settings, include_extras=True)
    lines = [_HEAD.format(variable=variable("http.listen"))]
    for name, hint in hints.items():
        if not is_section(hint) and name not in IN_SECTIONS:
            lines += _setting(name, hint, getattr(settings, name))
    for section, kind in hints.items():
        if section in NAMED:
            lines += _of_names(section, getattr(settings, section))
        elif section in LISTED:
            lines += _of_list(section, getattr(settings, section))
        elif is_section(kind):
            lines += [*_comment(kind.__doc__ or ""), f"[{section}]"]
            for name, hint in get_type_hints(kind, include_extras=True).items():
                value = getattr(getattr(settings, section), name)
                lines += _setting(f"{section}.{name}", hint, value)
    return "\n".join(lines).rstrip() + "\n"


def values(settings: Settings) -> Values:
    """Return the settings as plain values, in sections, in the form in which a file has them."""
    plain: Values = {}
    for name in names():
        value: Any = settings
        for part in name.split("."):
            value = getattr(value, part)
        plain[name] = _plain(value)
    sections = nested(plain)
    for part in NAMED:
        named = getattr(settings, part)
        if named:
            sections[part] = {app: _plain_section(section) for app, section in named.items()}
    for part in LISTED:
        listed = getattr(settings, part)
        if listed:
            sections[part] = [_plain_section(section) for section in listed]
    return sections


def toml_value(value: object) -> str:
    """Return a setting's value in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return str(value) if type(value) in (int, float) else json.dumps(str(value))


def _of_names(part: str, sections: dict[str, msgspec.Struct]) -> list[str]:
    """Return the lines of a part whose sections have names, or a commented example if there is
    none."""
    kind = NAMED[part]
    hints = get_type_hints(kind, include_extras=True)
    lines: list[str] = []
    for app, section in sections.items() or [(PLACEHOLDERS[part], None)]:
        shown = section or SPECIMENS[part]
        body = [f"[{part}.{json.dumps(app) if '.' in app else app}]"]
        for field in msgspec.structs.fields(kind):
            value = getattr(shown, field.name)
            body += _setting(field.encode_name, hints[field.name], value)
        lines += _comment(kind.__doc__ or "")
        lines += body if section else ["# " + line if line else "" for line in body]
    return lines


def _of_list(part: str, sections: list[msgspec.Struct]) -> list[str]:
    """Return the lines of all sections of a list, or a commented example if there is none."""
    kind = LISTED[part]
    hints = get_type_hints(kind, include_extras=True)
    lines: list[str] = []
    for section in sections or [EXAMPLES[part]]:
        body = [f"[[{part}]]"]
        for name, hint in hints.items():
            body += _setting(name, hint, getattr(section, name))
        lines += _comment(kind.__doc__ or "")
        lines += body if sections else ["# " + line if line else "" for line in body]
    return lines


def _setting(name: str, hint: object, value: object) -> list[str]:
    meta = described(hint)
    about = (meta.description or "").rstrip(".") + "."
    allowed = [f'"{word}"' for word in allowed_words(hint)]
    if not all(choice in about for choice in allowed):
        about += f" {'Some' if isinstance(value, tuple) else 'One'} of {', '.join(allowed)}."
    line = f"{name.rpartition('.')[2]} = "
    if value is None:
        # TOML cannot write that nothing is set, so show an example that can be uncommented.
        return [*_comment(about), f"# {line}{toml_value((meta.examples or [''])[0])}", ""]
    return [*_comment(about), line + toml_value(value), ""]


def _comment(text: str) -> list[str]:
    return ["# " + line for line in wrap(" ".join(text.split()), WIDTH)]


def _plain_section(section: msgspec.Struct) -> Values:
    found = {
        field.encode_name: _plain(getattr(section, field.name))
        for field in msgspec.structs.fields(section)
    }
    return {name: value for name, value in found.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if value is None or type(value) in (int, float, bool) else str(value)
