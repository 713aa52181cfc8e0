"""Reads the settings from a file, then from variables, then from options; the last one wins."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lasthop.decision.policies import POLICIES
from lasthop.errors import InvalidRequest
from lasthop.runtime.settings.apps import MAX_STATE, NAMED
from lasthop.runtime.settings.converting import Values, converted, listed_sections, named_sections
from lasthop.runtime.settings.gateway import Settings
from lasthop.runtime.settings.issuers import check_issuers
from lasthop.runtime.settings.naming import (
    IN_SECTIONS,
    PREFIX,
    guess,
    is_list,
    names,
    variable,
)
from lasthop.runtime.settings.section_lists import LISTED
from lasthop.runtime.units import Size

CLIENT_VARIABLES = frozenset({"LASTHOP_CONFIG", "LASTHOP_URL", "LASTHOP_TOKEN", "LASTHOP_APP"})
"""Variables that are read by commands and are not settings of the gateway."""

_KUBERNETES = re.compile(r"LASTHOP_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_.*)?)")
"""The variables that Kubernetes adds to every pod beside a service named `lasthop`; they are
ignored."""


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """Settings from a file, overridden by variables, overridden by options such as `http.listen`.

    Raises `InvalidRequest` with one line that names the place and the setting.
    """
    settings = Settings()
    if file is not None:
        settings = _merged(settings, _read(file), str(file))
    settings = _merged(settings, _from_environment(environment or {}), "the environment")
    given = {name: value for name, value in (options or {}).items() if value is not None}
    settings = _merged(settings, nested(given), "the command line")
    _refuse_contradictions(settings)
    return settings


def nested(values: Mapping[str, object]) -> Values:
    """Return sections made from values by dotted names."""
    sections: Values = {}
    for name, value in values.items():
        *outer, last = name.split(".")
        place = sections
        for section in outer:
            place = place.setdefault(section, {})
        place[last] = value
    return sections


def _refuse_contradictions(settings: Settings) -> None:
    """Raise `InvalidRequest` for settings that are valid alone but not together."""
    tls = settings.tls
    if bool(tls.cert) != bool(tls.key):
        raise InvalidRequest("tls.cert and tls.key must be set together")
    try:
        settings.beep_listen  # noqa: B018
    except ValueError as error:
        raise InvalidRequest(f"beep.listen: {error}") from None
    if tls.required and not tls.cert:
        raise InvalidRequest("tls.required needs tls.cert and tls.key")
    if tls.required and settings.seqpacket.psm:
        raise InvalidRequest("tls.required rules out seqpacket.psm: Bluetooth has no TLS")
    if tls.client_ca and not tls.cert:
        raise InvalidRequest("tls.client_ca needs tls.cert and tls.key")
    check_issuers(settings.issuers)
    for app, surrogate in settings.surrogates.items():
        if surrogate.state > MAX_STATE:
            raise InvalidRequest(f"surrogates.{app}.state: must be at most {Size(MAX_STATE)}")
    for name, route in settings.default_routes.items():
        if route.variant not in settings.variants:
            raise InvalidRequest(
                f"default_routes.{name}.variant: this gateway does not serve {route.variant!r};"
                f" it serves {', '.join(sorted(settings.variants))}"
            )
        for pattern in route.addresses:
            if ":" not in pattern:
                raise InvalidRequest(
                    f"default_routes.{name}.addresses: expected TYPE:VALUE, such as PLMN:+1555*"
                )
    policy, known = settings.topics.policy, dict.fromkeys((*POLICIES, *settings.plugins.policies))
    if policy not in known:
        raise InvalidRequest(f"topics.policy: unknown policy {policy!r}; known: {', '.join(known)}")
    largest = max(settings.limits.body, settings.limits.largest_body)
    for app, behaviour in settings.behaviours.items():
        if (behaviour.max_size or 0) > largest:
            raise InvalidRequest(
                f"behaviours.{app}.max_size: must be at most limits.largest_body, "
                f"which is {Size(largest)}"
            )


def _read(file: Path) -> Values:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InvalidRequest(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file}: {error}") from None


def _from_environment(environment: Mapping[str, str]) -> Values:
    known = {variable(name): name for name in names()}
    values: dict[str, object] = {}
    for key, value in environment.items():
        if not key.startswith(PREFIX) or key in CLIENT_VARIABLES or _KUBERNETES.fullmatch(key):
            continue
        if key not in known:
            raise InvalidRequest(f"unknown variable {key}{guess(key, known)}")
        name = known[key]
        several = [item.strip() for item in value.split(",") if item.strip()]
        values[name] = several if is_list(name) else value
    return nested(values)


def _merged(settings: Settings, values: Values, origin: str) -> Settings:
    of_names: dict[str, Any] = {
        part: getattr(settings, part) | named_sections(values.get(part, {}), part, kind, origin)
        for part, kind in NAMED.items()
    }
    lists: dict[str, Any] = {
        part: listed_sections(part, values[part], origin)
        if part in values
        else getattr(settings, part)
        for part in LISTED
    }
    values = {name: value for name, value in values.items() if name not in IN_SECTIONS}
    _refuse_unknown(values, origin)
    merged = converted(_overlaid(settings, values), Settings, f"{origin}: ")
    for part, sections in (of_names | lists).items():
        setattr(merged, part, sections)
    return merged


def _overlaid(settings: Settings, values: Values) -> Values:
    """Return a value for every setting but those of named sections and of lists of sections:
    the given one, else the present one."""
    merged: Values = {}
    for name in Settings.__struct_fields__:
        current, new = getattr(settings, name), values.get(name, {})
        if name in IN_SECTIONS:
            continue
        if isinstance(current, msgspec.Struct) and isinstance(new, dict):
            merged[name] = {f: getattr(current, f) for f in current.__struct_fields__} | new
        else:
            merged[name] = values.get(name, current)
    return merged


def _refuse_unknown(values: Values, origin: str) -> None:
    known = set(names())
    sections = {name.partition(".")[0] for name in known if "." in name}
    for name, value in values.items():
        if isinstance(value, dict):
            given = [f"{name}.{inner}" for inner in value]
        elif name in sections:
            raise InvalidRequest(f"{origin}: {name} is a section: write [{name}]")
        else:
            given = [name]
        for full in given:
            if full not in known:
                raise InvalidRequest(f"{origin}: unknown setting {full}{guess(full, known)}")
