"""Python names for the names of a description.

Two names of a description must not become the same Python name, and none may hide a name that the
generated module uses; where that happens, the later name is changed, or refused if it cannot be.
"""

from __future__ import annotations

import keyword
import re

from lasthop_xml.orl.errors import MalformedOrl
from lasthop_xml.orl.model import Component, Description, Structure
from lasthop_xml.xas.names import XSD_NS, Name

PYTHON_TYPES = {
    "string": "str",
    "boolean": "bool",
    "decimal": "Decimal",
    "float": "float",
    "double": "float",
    "date": "date",
    "time": "time",
    "dateTime": "datetime",
    "duration": "Duration",
    "hexBinary": "bytes",
    "base64Binary": "bytes",
    "QName": "QName",
}
"""Python types by the name of their XSD type; every other primitive type is an integer type."""

USED = frozenset(
    {"Any", "Callable", "Components", "Final", "Mapping", "Source", "Writer", "XmlName"}
    | {"PREFIXES", "None", "True", "False"}
    | {name for name in PYTHON_TYPES.values() if name[0].isupper()}
)
"""Names that every generated module defines or imports, including those of its annotations."""

_NOT_IN_ANNOTATIONS = frozenset({*PYTHON_TYPES.values(), "int", "list", "field"})
_SEPARATORS = re.compile(r"[-.·‿⁀_]+")


def primitive(type_: Name) -> str | None:
    """Return the Python type of a primitive type, or None if the type is not primitive."""
    return PYTHON_TYPES.get(type_.local, "int") if type_.ns == XSD_NS else None


def camel_case(local: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in _SEPARATORS.split(local))


def snake_case(local: str) -> str:
    joined = _SEPARATORS.sub("_", local)
    return re.sub(r"(?<=[^\W_A-Z])(?=[A-Z])", "_", joined).lower().strip("_")


def field_name(component: Component) -> str:
    """Return the name of a component's field in its class."""
    name = snake_case(component.name.local)
    if keyword.iskeyword(name) or name in _NOT_IN_ANNOTATIONS:
        # In the body of a class, a field with the name of a type would hide that type.
        name += "_"
    return _checked(name, component)


def field_names(structure: Structure) -> dict[Component, str]:
    """Return the field names of all components of a type; raise MalformedOrl if two are the
    same."""
    names: dict[Component, str] = {}
    for component in structure.components:
        name = field_name(component)
        if name in names.values():
            raise _refused("two components have the same name in Python", component, name)
        names[component] = name
    return names


def class_names(description: Description, codec: str) -> dict[Name, str]:
    """Return the class names of all types; raise MalformedOrl if two are the same."""
    taken = {f"{codec}Encoder", f"{codec}Decoder", *USED}
    names: dict[Name, str] = {}
    for structure in description.structures:
        name = _checked(camel_case(structure.name.local), structure)
        if name in taken:
            name += "Type"
        if name in taken:
            raise _refused("two types have the same name in Python", structure, name)
        taken.add(name)
        names[structure.name] = name
    return names


def _checked(name: str, thing: Component | Structure) -> str:
    if not name.isidentifier():
        raise _refused("this name cannot become a name in Python", thing, name)
    return name


def _refused(detail: str, thing: Component | Structure, name: str) -> MalformedOrl:
    return MalformedOrl(
        detail, name=str(thing.name), python=name, line=thing.line, column=thing.column
    )
