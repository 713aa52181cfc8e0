"""A Python module from a description: classes, and an encoder and a decoder for them (thesis,
section 4.5).

The module is meant to be read: one dataclass and two short functions for each type. It is typed,
and formatted as `ruff format` would.
"""

from __future__ import annotations

from lasthop_xml.orl.layout import WIDTH, bracketed, exploded, text
from lasthop_xml.orl.model import Component, Description, Occurrence, Structure
from lasthop_xml.orl.naming import (
    USED,
    camel_case,
    class_names,
    field_names,
    primitive,
    snake_case,
)
from lasthop_xml.xas.names import XSD_NS, Name

_FROM = {
    "Decimal": "decimal",
    "Duration": "lasthop_xml.xas.types.times",
    "QName": "lasthop_xml.xas.types.texts",
    "date": "datetime",
    "datetime": "datetime",
    "time": "datetime",
}
"""The modules of the classes of primitive values; the other classes are built in."""


def generate(description: Description, *, source: str) -> str:
    """Return the source text of the module; `source` is the description's file name, which the
    module's docstrings mention."""
    return _Module(description, source).text()


def codec_name(description: Description, source: str) -> str:
    """Return the name that the encoder and the decoder share: the one that the description gives,
    or a name made from its file name."""
    stem = source.rpartition("/")[2].rpartition(".")[0] or source
    named = camel_case(description.codec_name or stem)
    return named if named.isidentifier() else "Generated"


class _Module:
    def __init__(self, description: Description, source: str) -> None:
        self._source = source
        self._description = description
        self._codec = codec_name(description, source)
        self._classes = class_names(description, self._codec)
        self._fields = {each.name: field_names(each) for each in description.structures}
        self._constants: dict[str, str] = {}
        self._taken = {*USED, *self._classes.values()}
        self._prefix_of = {ns: prefix for prefix, ns in description.namespaces.items()}
        self._namespaces = {
            ns: self._constant(f"{snake_case(prefix).upper()}_NS")
            for prefix, ns in description.namespaces.items()
        }
        self._types = {
            each.name: self._constant(f"{snake_case(self._classes[each.name]).upper()}_TYPE")
            for each in description.structures
        }
        parts = [part for each in description.structures for part in each.components]
        self._primitives = {
            type_: self._constant(f"_{snake_case(type_.local).upper()}")
            for type_ in sorted({part.type for part in parts if part.type.ns == XSD_NS})
        }
        self._elements: dict[Name, str] = {}
        for part in parts:
            if part.name not in self._elements:
                self._elements[part.name] = self._constant(
                    f"_{snake_case(part.name.local).upper()}_ELEMENT"
                )

    def text(self) -> str:
        structures = self._description.structures
        blocks = [[*self._head(), "", *self._constant_lines()]]
        if self._description.package is None:
            blocks += [self._class(each) for each in structures]
        blocks += [self._encoder(), self._decoder()]
        for each in structures:
            blocks += [self._encode(each), self._decode(each)]
        blocks.append(self._tables())
        module = "\n\n\n".join("\n".join(block) for block in blocks) + "\n"
        too_long = any(len(line) > WIDTH for line in module.splitlines())
        return f"# ruff: noqa: E501\n{module}" if too_long else module

    def _constant(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self._taken or not name.isidentifier():
            name, number = f"{wanted if wanted.isidentifier() else '_X'}_{number}", number + 1
        self._taken.add(name)
        return name

    def _head(self) -> list[str]:
        own = self._description.package is None
        used = {primitive(type_) for type_ in self._primitives}
        imports: dict[str, set[str]] = {
            "collections.abc": {"Callable", "Mapping"},
            "typing": {"Any", "Final"},
            "lasthop_xml.orl.components": {"components", "instance"},
            "lasthop_xml.xas.content": {"MISSING", "Source"},
            "lasthop_xml.xas.names": {"Name as XmlName"},
            "lasthop_xml.xas.writer": {"TYPED_PREFIXES", "Writer"},
        }
        if own:
            imports["dataclasses"] = {"dataclass"}
            if any(part.occurrence is Occurrence.REPEATED for part in self._parts()):
                imports["dataclasses"].add("field")
        if self._primitives:
            imports["lasthop_xml.xas.names"].add("XSD_NS")
        for name in used:
            if name in _FROM:
                imports.setdefault(_FROM[name], set()).add(name)
        lines = [
            f'"""The types of {self._source}, written by `lasthop orl generate`.',
            "",
            "To change this module, change the description and generate it again.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
        ]
        lines += self._imports({m: n for m, n in imports.items() if not m.startswith("lasthop")})
        lines.append("")
        lines += self._imports({m: n for m, n in imports.items() if m.startswith("lasthop")})
        if self._description.package is not None:
            lines.append("")
            lines += self._imports({self._description.package: set(self._classes.values())})
        return lines

    def _imports(self, modules: dict[str, set[str]]) -> list[str]:
        lines = []
        for module in sorted(modules):
            # Constants come before classes, and classes before functions.
            names = sorted(
                modules[module],
                key=lambda name: (not name.isupper(), name[0].islower(), name),
            )
            line = f"from {module} import {', '.join(names)}"
            lines += (
                [line] if len(line) <= WIDTH else exploded(f"from {module} import (", names, ")")
            )
        return lines

    def _parts(self) -> list[Component]:
        return [part for each in self._description.structures for part in each.components]

    def _constant_lines(self) -> list[str]:
        lines = []
        for ns, constant in self._namespaces.items():
            line = f"{constant}: Final = {text(ns)}"
            fits = len(line) <= WIDTH
            lines += [line] if fits else [f"{constant}: Final = (", f"    {text(ns)}", ")"]
        prefixes = ["**TYPED_PREFIXES"]
        for ns, constant in self._namespaces.items():
            prefixes.append(f'"{self._prefix_of[ns]}": {constant}')
        lines += bracketed("PREFIXES: Final[Mapping[str, str]] = {", prefixes, "}")
        lines += ['"""The prefixes that the root of a document with these types declares."""', ""]
        for name, constant in self._types.items():
            lines += self._name_lines(constant, name)
        lines += [""] if self._primitives or self._elements else []
        for name, constant in {**self._primitives, **self._elements}.items():
            lines += self._name_lines(constant, name)
        return lines

    def _name_lines(self, constant: str, name: Name) -> list[str]:
        ns = {XSD_NS: "XSD_NS", "": '""'}.get(name.ns) or self._namespaces.get(name.ns)
        return bracketed(
            f"{constant}: Final = XmlName(", [ns or text(name.ns), text(name.local)], ")"
        )

    def _field(self, name: str, component: Component) -> list[str]:
        class_ = self._class_of(component)
        match component.occurrence:
            case Occurrence.ONE:
                return [f"    {name}: {class_}"]
            case Occurrence.OPTIONAL:
                return [f"    {name}: {class_} | None = None"]
            case Occurrence.REPEATED:
                before = f"    {name}: list[{class_}] = field("
                return bracketed(before, ["default_factory=list"], ")")

    def _class_of(self, component: Component) -> str:
        return primitive(component.type) or self._classes[component.type]

    def _class(self, structure: Structure) -> list[str]:
        lines = [
            "@dataclass(kw_only=True, slots=True)",
            f"class {self._classes[structure.name]}:",
            f'    """Type {self._shown(structure.name)}."""',
        ]
        fields = self._fields[structure.name]
        if fields:
            lines.append("")
        for component, name in fields.items():
            lines += self._field(name, component)
        return lines

    def _shown(self, name: Name) -> str:
        return (
            f"{self._prefix_of[name.ns]}:{name.local}" if name.ns in self._prefix_of else name.local
        )

    def _encoder(self) -> list[str]:
        return [
            f"class {self._codec}Encoder:",
            f'    """Encodes the types of {self._source}, in an EncoderChain or a Writer."""',
            "",
            "    def encode(self, type_: XmlName, value: Any, writer: Writer) -> bool:",
            "        write = _ENCODERS.get(type_)",
            "        if write is None:",
            "            return False",
            "        write(value, writer)",
            "        return True",
        ]

    def _decoder(self) -> list[str]:
        return [
            f"class {self._codec}Decoder:",
            f'    """Decodes the types of {self._source}, in a DecoderChain or a Source."""',
            "",
            "    def decode(self, type_: XmlName, source: Source) -> Any:",
            "        read = _DECODERS.get(type_)",
            "        return MISSING if read is None else read(source)",
        ]

    def _function(self, verb: str, structure: Structure) -> str:
        return f"_{verb}_{self._types[structure.name].lower().removesuffix('_type')}"

    def _encode(self, structure: Structure) -> list[str]:
        class_ = self._classes[structure.name]
        lines = [f"def {self._function('encode', structure)}(value: Any, writer: Writer) -> None:"]
        fields = self._fields[structure.name]
        lines.append(f"    {'it = ' if fields else ''}instance(value, {class_})")
        for component, name in fields.items():
            element = [self._elements[component.name], self._type_constant(component)]
            match component.occurrence:
                case Occurrence.ONE:
                    lines += bracketed("    writer.typed_element(", [*element, f"it.{name}"], ")")
                case Occurrence.OPTIONAL:
                    lines.append(f"    if it.{name} is not None:")
                    lines += bracketed(
                        "        writer.typed_element(", [*element, f"it.{name}"], ")"
                    )
                case Occurrence.REPEATED:
                    lines.append(f"    for each_{name} in it.{name}:")
                    lines += bracketed(
                        "        writer.typed_element(", [*element, f"each_{name}"], ")"
                    )
        return lines

    def _decode(self, structure: Structure) -> list[str]:
        class_ = self._classes[structure.name]
        lines = [f"def {self._function('decode', structure)}(source: Source) -> {class_}:"]
        fields = self._fields[structure.name]
        if not fields:
            return [*lines, "    components(source, {})", f"    return {class_}()"]
        types = [
            f"{self._elements[each.name]}: {self._type_constant(each)}"
            for each in structure.components
        ]
        lines += exploded("    types = {", types, "}")
        lines.append("    found = components(source, types)")
        how = {Occurrence.ONE: "one", Occurrence.OPTIONAL: "optional"}
        lines.append(f"    return {class_}(")
        for component, name in fields.items():
            method = how.get(component.occurrence, "repeated")
            element, of = self._elements[component.name], self._class_of(component)
            lines += bracketed(f"        {name}=found.{method}(", [element, of], "),")
        return [*lines, "    )"]

    def _type_constant(self, component: Component) -> str:
        return self._primitives.get(component.type) or self._types[component.type]

    def _tables(self) -> list[str]:
        structures = self._description.structures
        encoders, decoders = (
            [f"{self._types[each.name]}: {self._function(verb, each)}" for each in structures]
            for verb in ("encode", "decode")
        )
        return [
            *exploded(
                "_ENCODERS: Final[Mapping[XmlName, Callable[[Any, Writer], None]]] = {",
                encoders,
                "}",
            ),
            *exploded(
                "_DECODERS: Final[Mapping[XmlName, Callable[[Source], Any]]] = {", decoders, "}"
            ),
        ]
