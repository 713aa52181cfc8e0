"""The declarations at the start of a schema file: namespaces and datatype libraries (compact
syntax, section 4)."""

from __future__ import annotations

from lasthop_xml.relaxng.annotations import AnnotationReader
from lasthop_xml.relaxng.datatypes.datatype import XSD_LIBRARY
from lasthop_xml.relaxng.lexer import failure
from lasthop_xml.xas.names import XMLNS_NS


class DeclarationReader(AnnotationReader):
    """An annotation reader that also reads the declarations of a file."""

    def declarations(self) -> None:
        declared: set[str] = set()
        while True:
            token = self.token
            if self.take("default"):
                self.expect("namespace")
                prefix = None if self.at("=") else self.unprefixed("a prefix")
                self.expect("=")
                ns = self._namespace_name()
                if self.default is not None:
                    raise failure("the default namespace is declared twice", token.at)
                if ns == XMLNS_NS:
                    raise failure(
                        "neither the prefix xmlns nor its namespace can be declared", token.at
                    )
                self.default = ns
                if prefix is not None:
                    self.declare(prefix, ns, token)
            elif self.take("namespace"):
                prefix = self.unprefixed("a prefix")
                self.expect("=")
                self.declare(prefix, self._namespace_name(), token)
            elif self.take("datatypes"):
                prefix = self.unprefixed("a prefix")
                self.expect("=")
                library = self.literal("the name of a datatype library")
                if prefix in declared:
                    raise failure("a prefix is declared twice", token.at, prefix=prefix)
                if prefix == "xsd" and library != XSD_LIBRARY:
                    raise failure(
                        "the prefix xsd is reserved for the types of XML Schema", token.at
                    )
                declared.add(prefix)
                self.libraries[prefix] = library
            else:
                return

    def _namespace_name(self) -> str:
        return self.inherited if self.take("inherit") else self.literal("a namespace")
