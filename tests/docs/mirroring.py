"""Where a module's tests are: every test file stands in the mirrored place of what it tests, or its
docstring names that by its path.

    python -m tests.docs.mirroring    the modules that no test file mirrors or names

A module without a test file of its own may well be tested through others: this is a list for people
who look for a place to begin, and nothing fails for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

_PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w.-]+\.\w+)?|[\w-]+\.(?:py|md|toml))`")
"""A file or a folder in a docstring: `core/pieces/uploads.py`, `core/pieces/`, `README.md`."""


def files(root: Path) -> list[Path]:
    """The test files of a repository, those of the XML package left to itself."""
    return sorted((root / "tests").rglob("test_*.py"))


def mirrored(root: Path, file: Path) -> Path | None:
    """The module or the package that a test file mirrors. Tests of benchmarks and examples mirror
    theirs; a test about the tests themselves stands beside what it tests."""
    place = file.relative_to(root / "tests")
    product = root / "src/lasthop"
    bases = [product, root]
    if place.parent == Path() or not (product / place.parts[0]).is_dir():
        bases.append(root / "tests")
    name = place.stem.removeprefix("test_")
    for base in bases:
        for found in (base / place.parent / f"{name}.py", base / place.parent / name):
            if found.exists():
                return found
    return None


def named(root: Path, file: Path) -> dict[str, Path | None]:
    """The paths in the docstring of a test file, and what is there."""
    before, _, rest = file.read_text().partition('"""')
    docstring = "" if before else rest.partition('"""')[0]
    return {
        path: next((at for at in (root / "src/lasthop" / path, root / path) if at.exists()), None)
        for path in _PATH.findall(docstring)
    }


def misplaced(root: Path) -> Iterator[str]:
    """What is to be done about test files of which nobody can tell what they are about."""
    for file in files(root):
        about = named(root, file)
        where = file.relative_to(root)
        for path, found in about.items():
            if found is None:
                yield f"{where} is about {path}, which is not there"
        if not about and mirrored(root, file) is None:
            yield (
                f"{where} mirrors no module: move it to the place of the one that it tests, or say"
                " in its docstring what it is about: `core/pieces/uploads.py`"
            )


def modules_alone(root: Path) -> Iterator[Path]:
    """The modules that no test file mirrors or names, nor their package."""
    product = root / "src/lasthop"
    known: set[Path | None] = set()
    for file in files(root):
        known |= {mirrored(root, file), *named(root, file).values()}
    for module in sorted(product.rglob("*.py")):
        if not (module.name.startswith("__") or known & {module, module.parent}):
            yield module.relative_to(product)


if __name__ == "__main__":
    print(*modules_alone(ROOT), sep="\n")
