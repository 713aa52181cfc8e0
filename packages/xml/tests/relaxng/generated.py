"""Random schemas in compact syntax; some of them break the rules of RELAX NG."""

from __future__ import annotations

from random import Random

NAMES = ("a", "b", "c", "d", "n:a", "n:e")
TYPES = ("string", "token", "xsd:int", "xsd:boolean", "xsd:string", "xsd:date", "xsd:NCName")
VALUES = ('"x"', '"y z"', 'xsd:int "7"', 'string " x"', "''", '"x" ~ "y"')


class Schemas:
    """Writes schemas, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._definitions: list[str] = []

    def next(self) -> str:
        """A grammar with a few definitions, which may refer to one another."""
        choose = self._random
        self._definitions = [f"d{number}" for number in range(choose.randrange(1, 5))]
        header = 'namespace n = "urn:n"\n'
        if choose.random() < 0.3:
            header += 'default namespace = "urn:d"\n'
        lines = [f"start = {self._element(2)}"]
        for name in self._definitions:
            sign = choose.choice(("=", "=", "=", "|=", "&="))
            lines.append(f"{name} {sign} {self._pattern(2)}")
            if sign != "=" and choose.random() < 0.5:
                lines.append(f"{name} {sign} {self._pattern(1)}")
        return header + "\n".join(lines) + "\n"

    def _element(self, depth: int) -> str:
        return f"element {self._names()} {{ {self._pattern(depth)} }}"

    def _names(self) -> str:
        kind = self._random.random()
        if kind < 0.85:
            return self._random.choice(NAMES)
        if kind < 0.9:
            return f"({self._random.choice(NAMES)} | {self._random.choice(NAMES)})"
        return self._random.choice(("*", "n:*", "* - n:*", "n:* - n:a", "* - (a | n:a)"))

    def _pattern(self, depth: int) -> str:
        """Anything; values and lists where they are most likely allowed."""
        choose = self._random
        kind = choose.random()
        if depth == 0 or kind < 0.25:
            return self._leaf()
        if kind < 0.45:
            return self._element(depth - 1)
        if kind < 0.8:
            sign = choose.choice((", ", ", ", " | ", " | ", " & "))
            parts = [self._particle(depth - 1) for _ in range(choose.randrange(2, 4))]
            return sign.join(parts)
        if kind < 0.85:
            return f"mixed {{ {self._pattern(depth - 1)} }}"
        return self._particle(depth - 1)

    def _particle(self, depth: int) -> str:
        sign = self._random.choice(("", "", "?", "*", "+"))
        return f"({self._pattern(depth)}){sign}"

    def _leaf(self) -> str:
        choose = self._random
        kind = choose.random()
        if kind < 0.25:
            return choose.choice(self._definitions)
        if kind < 0.45:
            return f"element {choose.choice(NAMES)} {{ {self._content()} }}"
        if kind < 0.65:
            content = choose.choice(("text", self._content()))
            return f"attribute {self._names()} {{ {content} }}"
        if kind < 0.75:
            return "text"
        if kind < 0.85:
            return self._content()
        return choose.choice(("empty", "empty", "notAllowed"))

    def _content(self) -> str:
        choose = self._random
        kind = choose.random()
        if kind < 0.45:
            return choose.choice(TYPES)
        if kind < 0.7:
            return choose.choice(VALUES)
        if kind < 0.8:
            return f"list {{ {choose.choice(TYPES)}* }}"
        if kind < 0.9:
            return f"({choose.choice(TYPES)} - {choose.choice(VALUES)})"
        return choose.choice(("text", "empty", 'xsd:string { maxLength = "2" }'))
