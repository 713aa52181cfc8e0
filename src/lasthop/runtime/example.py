"""Settings as the commented TOML file that they could have been read from."""

from __future__ import annotations

import json
from textwrap import wrap
from typing import get_args, get_type_hints

import msgspec

from lasthop.runtime.settings import SURROGATES, Settings, Surrogate, allowed_words, variable

WIDTH = 98

_HEAD = """\
# Settings of a lasthop gateway, with their defaults: `lasthop up --config FILE`.
# A variable overrides what is here: {variable} for http.listen, and so on.
# Times end in d, h, m, s or ms; sizes in B, KiB, MiB or GiB.
"""


def render(settings: Settings) -> str:
    """The file. Reading it gives the same settings back."""
    hints = get_type_hints(Settings, include_extras=True)
    lines = [_HEAD.format(variable=variable("http.listen"))]
    for name, hint in hints.items():
        if not is_section(hint) and name != SURROGATES:
            lines += _setting(name, hint, getattr(settings, name))
    for section, kind in hints.items():
        if section == SURROGATES:
            lines += _surrogates(settings)
        elif is_section(kind):
            lines += [*_comment(kind.__doc__ or ""), f"[{section}]"]
            for name, hint in get_type_hints(kind, include_extras=True).items():
                value = getattr(getattr(settings, section), name)
                lines += _setting(f"{section}.{name}", hint, value)
    return "\n".join(lines).rstrip() + "\n"


def _surrogates(settings: Settings) -> list[str]:
    """A section for every app that has one; as an example only, where none has."""
    lines: list[str] = []
    for app, surrogate in settings.surrogates.items() or [("APP", None)]:
        lines += _comment(Surrogate.__doc__ or "")
        shown = surrogate or Surrogate(place="package.module:Class")
        hints = get_type_hints(Surrogate, include_extras=True)
        body = [f"[{SURROGATES}.{json.dumps(app) if '.' in app else app}]"]
        for field in msgspec.structs.fields(Surrogate):
            value = getattr(shown, field.name)
            body += _setting(field.encode_name, hints[field.name], value)
        lines += body if surrogate else ["# " + line if line else "" for line in body]
    return lines


def is_section(hint: object) -> bool:
    """Whether a field of the settings is a part with settings of its own."""
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _setting(name: str, hint: object, value: object) -> list[str]:
    (meta,) = (m for m in get_args(hint) if isinstance(m, msgspec.Meta))
    about = meta.description or ""
    allowed = [f'"{word}"' for word in allowed_words(hint)]
    if not all(choice in about for choice in allowed):
        about += f" One of {', '.join(allowed)}."
    return [*_comment(about), f"{name.rpartition('.')[2]} = {toml_value(value)}", ""]


def toml_value(value: object) -> str:
    """A setting's value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if type(value) is int else json.dumps(str(value))


def _comment(text: str) -> list[str]:
    return ["# " + line for line in wrap(" ".join(text.split()), WIDTH)]
