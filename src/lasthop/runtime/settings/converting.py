"""Converts the values of settings, as they are written, into sections, or raises an error of one
line."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from lasthop.access.callers import APP_NAME
from lasthop.core.rights.rule import checked
from lasthop.errors import InvalidRequest
from lasthop.runtime.settings.apps import PLACEHOLDERS
from lasthop.runtime.settings.naming import Section, allowed_words, guess
from lasthop.runtime.settings.rights import RuleSettings
from lasthop.runtime.settings.section_lists import LISTED
from lasthop.runtime.units import Duration, LimitList, ListenAddress, ProxyNetwork, Size

Values: TypeAlias = dict[str, Any]
SomeSection = TypeVar("SomeSection", bound=msgspec.Struct)


def converted(values: Values, kind: type[SomeSection], place: str) -> SomeSection:
    """Return a section made from its values. In an error, `place` is put before the name of the
    wrong setting."""
    try:
        return msgspec.convert(values, kind, strict=False, dec_hook=_decode)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        path = path.rstrip("`")
        wanted = _wanted(kind, path, message) or message.replace("`", "")
        raise InvalidRequest(f"{f'{place}{path}'.rstrip('.')}: {wanted}") from None


def named_sections(
    sections: object, part: str, kind: type[SomeSection], origin: str
) -> dict[str, SomeSection]:
    """Return the sections `[part.NAME]` of the configuration, each under its name."""
    word = PLACEHOLDERS[part]
    if not isinstance(sections, dict) or not all(isinstance(v, dict) for v in sections.values()):
        raise InvalidRequest(f"{origin}: {part} are sections: write [{part}.{word}]")
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    found: dict[str, SomeSection] = {}
    for app, section in sections.items():
        place = f"{part}.{app}"
        if not APP_NAME.fullmatch(app):
            what = "an app" if word == "APP" else "a section"
            raise InvalidRequest(f"{origin}: {place}: not the name of {what}")
        for name in section:
            if name not in known:
                raise InvalidRequest(
                    f"{origin}: unknown setting {place}.{name}{guess(name, known)}"
                )
        found[app] = converted(section, kind, f"{origin}: {place}.")
    return found


def listed_sections(part: str, sections: object, origin: str) -> list[msgspec.Struct]:
    """Return the sections of a part that is a list of them, such as the rules of a file; raise
    `InvalidRequest` with one line for a wrong one."""
    if not isinstance(sections, list) or not all(isinstance(s, dict) for s in sections):
        raise InvalidRequest(f"{origin}: {part} are sections: write [[{part}]]")
    kind = LISTED[part]
    found: list[msgspec.Struct] = []
    for number, section in enumerate(sections, 1):
        place = f"{origin}: {part}.{number}"
        made = converted(_listed(section, kind), kind, f"{place}.")
        if isinstance(made, RuleSettings):
            try:
                checked(made.rule(number))
            except InvalidRequest as error:
                raise InvalidRequest(f"{place}: {error}") from None
        found.append(made)
    names = [r.rule(n).name for n, r in enumerate(found, 1) if isinstance(r, RuleSettings)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"{origin}: two rules have the name {name}")
    return found


def _listed(section: dict[str, Any], kind: Section) -> dict[str, Any]:
    """Return a section in which a single text stands for a list of one."""
    lists = {name for name, hint in get_type_hints(kind).items() if get_origin(hint) is tuple}
    return {
        name: [value] if name in lists and isinstance(value, str) else value
        for name, value in section.items()
    }


def _wanted(kind: Section, path: str, message: str) -> str:
    """Return what a setting expects, or an empty text where the decoder's message is clear
    enough."""
    hint = _hint(kind, path)
    words = allowed_words(hint)
    if words:
        return "expected " + " or ".join(f'"{word}"' for word in words)
    examples = _examples(hint)
    if examples and "matching regex" in message:
        return "expected text such as " + " or ".join(f'"{example}"' for example in examples)
    if "Expected `array`, got" in message:
        return 'expected a list, such as ["one", "two"]'
    return ""


def _hint(kind: Any, path: str) -> Any:
    """Return the type of the setting at a path such as `http.listen` or `fixed[0]`."""
    for part in path.partition("[")[0].split(".") if path else ():
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
        kind = get_type_hints(kind, include_extras=True)[fields[part]]
    return kind


def _examples(hint: Any) -> list[Any]:
    """Return the examples of a setting's type, or of its items if it is a list."""
    if get_origin(hint) is not Annotated:
        return []
    inner, *metas = get_args(hint)
    found = [e for meta in metas if isinstance(meta, Meta) for e in meta.examples or ()]
    return found or (_examples(get_args(inner)[0]) if get_origin(inner) is tuple else [])


def _decode(kind: type, value: object) -> object:
    if isinstance(value, kind):
        return value
    if kind in (Duration, Size, ListenAddress, LimitList, ProxyNetwork):
        return kind.parse(value)
    raise NotImplementedError(kind)
