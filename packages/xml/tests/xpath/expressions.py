"""Documents and expressions of the subset, from a random source."""

from random import Random

NAMES = ("a", "b", "c")
KEYS = ("k", "l")
# Not 1e1: libxml2 reads it as a number, and XPath 1.0 (section 3.7) says that it is none.
VALUES = ("1", "2", "3.5", " 2 ", "-1", "x", "xy", "", "NaN", "+2", "2.", ".5")
PREFIXES = {"p": "urn:p", "q": "urn:q"}


class Expressions:
    """Makes expressions; some of their positions are refused for what stands around them."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def expression(self) -> str:
        return " | ".join(self._path() for _ in range(self._pick(1, 1, 1, 2)))

    def _pick(self, *choices: int) -> int:
        return self._random.choice(choices)

    def _word(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _path(self) -> str:
        steps = [self._step(0) for _ in range(self._pick(1, 2, 3))]
        path = "".join(self._slash() + step for step in steps)
        return path + self._word("", "", "", "/@k", "//@*", "/text()", "//text()")

    def _slash(self) -> str:
        return self._word("/", "/", "//")

    def _test(self) -> str:
        return self._word(*NAMES, *NAMES, "*", "p:a", "p:*", "q:b")

    def _key(self) -> str:
        return "@" + self._word(*KEYS, *KEYS, "*", "p:k")

    def _operator(self) -> str:
        return self._word("=", "=", "!=", "<", "<=", ">", ">=")

    def _constant(self) -> str:
        quoted = [f"'{value}'" for value in VALUES]
        return self._word(*quoted, "1", "2", "3.5", "-1", "0", ".5", "2.", "1", "2")

    def _step(self, depth: int) -> str:
        step = self._word("", "", "child::") + self._test()
        kind = self._random.randrange(10 if depth < 3 else 4)
        if kind == 4:
            return f"{step}[{self._position()}]"
        if kind == 5:
            return (
                f"{step}[{self._key()} {self._operator()} {self._constant()}][{self._position()}]"
            )
        if kind == 6:
            joint = self._word("and", "or")
            return f"{step}[position() {self._operator()} 2 {joint} {self._key()}]"
        if kind > 6:
            count = self._pick(1, 1, 2)
            return step + "".join(f"[{self._condition(depth + 1)}]" for _ in range(count))
        return step

    def _position(self) -> str:
        number = self._word("1", "2", "3")
        form = self._pick(0, 1, 2)
        if form == 0:
            return number
        if form == 1:
            return f"{number} {self._operator()} position()"
        return f"position() {self._operator()} {number}"

    def _condition(self, depth: int) -> str:
        kind = self._random.randrange(10)
        if kind == 0 and depth < 3:
            return f"not({self._condition(depth + 1)})"
        if kind == 1 and depth < 3:
            joint = self._word(" and ", " or ")
            return f"({self._condition(depth + 1)}{joint}{self._condition(depth + 1)})"
        if kind == 2:
            function = self._word("contains", "starts-with")
            return f"{function}({self._word('.', '@k', '@p:k')}, '{self._word('x', '1', 'y')}')"
        path = self._inner_path(depth)
        if kind < 5:
            return path
        if kind == 5:
            return f"{self._constant().lstrip('-')} {self._operator()} {path}"
        return f"{path} {self._operator()} {self._constant()}"

    def _inner_path(self, depth: int) -> str:
        kind = self._pick(0, 1, 2, 3, 4, 5)
        if kind == 0:
            return "."
        last = self._word(self._key(), "text()")
        if kind in {1, 2}:
            return self._word("", ".//", "./") + last
        steps = [self._step(depth + 1) for _ in range(self._pick(1, 2))]
        path = self._word("", "", "./", ".//") + self._slash().join(steps)
        return f"{path}{self._slash()}{last}" if kind in {3, 4} else path


class Documents:
    """Makes documents in which such expressions find something."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def document(self) -> bytes:
        mappings = "".join(f' xmlns:{to}="{ns}"' for to, ns in PREFIXES.items())
        return self._element(0, mappings).encode()

    def _element(self, depth: int, mappings: str = "") -> str:
        pick = self._random.choice
        name = pick((*NAMES, *NAMES, "p:a", "q:b"))
        chosen = {pick((*KEYS, "p:k")) for _ in range(self._random.randrange(3))}
        attributes = "".join(f' {key}="{pick(VALUES)}"' for key in sorted(chosen))
        parts = [self._part(depth) for _ in range(self._random.randrange(4 if depth < 4 else 1))]
        return f"<{name}{mappings}{attributes}>{''.join(parts)}</{name}>"

    def _part(self, depth: int) -> str:
        kind = self._random.randrange(6)
        if kind < 3:
            return self._element(depth + 1)
        special = ("<!--c-->", "<?go x?>", "<![CDATA[x]]>", "&#49;")
        return self._random.choice(special if kind == 3 else VALUES)
