"""Which names belong to a feature of the core.

The spine is what stands directly in `core/` and in the folders named here; every other folder below
it is a feature. A name belongs to a feature if only that feature defines it, if it is an attribute
of the spine that only that feature ever sets, or if one of its words is in the list below.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.words.knots import imports_of
from tests.words.split import words_of
from tests.words.tree import Function, Module, Tree, assigned, is_public

CORE = "lasthop.core"
SEAMS = ("lasthop.core", "lasthop.core.gateway", "lasthop.core.identity")
"""Where features are put together, so that naming them is the purpose."""
SPINE = ("apps", "contacts", "publishing", "rights")
"""Folders of `core/` that belong to the spine."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORDS = _words(
    """
    air binding bond bonds books carriage carried circle circles claim claimable claims consults
    contest courier errand feed feeds keeper pact pilot pull pulls push pushes ranked routes
    steered steering stream streams surrogate surrogates wishes
    """
)
"""Words that belong to one feature, whichever name they are part of."""

KINDS = frozenset(["TOPIC", "GROUP", "QUEUE", "SERVICE", "PUSH"])
"""Kinds of target that a feature serves."""

BAGS = _words(
    """
    attributes extra extras flags hints marks meta metadata notes options properties tags traits
    """
)
"""Dictionaries in which a feature could hide an attribute."""

FILLERS = _words("add append extend insert setdefault update")
MUTATORS = FILLERS | _words("clear discard pop remove")


@dataclass(frozen=True)
class Vocabulary:
    """Which names belong to features."""

    classes: frozenset[str]
    """Public classes that only features define."""
    attributes: dict[str, str]
    """Attributes that belong to one feature, and to which one."""
    answers: frozenset[str]
    """Those among them that are called: they return a constant."""

    def mention(self, node: ast.AST) -> str | None:
        """The feature's name that a single node mentions; None if there is none."""
        match node:
            case ast.Attribute(value=ast.Name(id="TargetKind"), attr=kind) if kind in KINDS:
                return f"TargetKind.{kind}"
            case ast.Attribute(attr=name) | ast.Name(id=name):
                return self._name(name, attribute=isinstance(node, ast.Attribute))
            case ast.Constant(value=str(text)):
                return self._string(text)
            case ast.Subscript(value=bag, slice=ast.Constant(value=str(key))) if _is_bag(bag):
                return f"[{key!r}]"
            case ast.Call(
                func=ast.Attribute(value=bag, attr="get"),
                args=[ast.Constant(value=str(key)), *_],
            ) if _is_bag(bag):
                return f".get({key!r})"
            case ast.Compare(
                left=ast.Constant(value=str(key)), ops=[ast.In() | ast.NotIn()], comparators=[bag]
            ) if _is_bag(bag):
                return f"{key!r} in"
            case ast.MatchMapping(keys=[ast.Constant(value=str(key)), *_]):
                return f"{{{key!r}: ...}}"
            case _:
                pass
        return None

    def _name(self, name: str, *, attribute: bool) -> str | None:
        if name in self.classes:
            return name
        if attribute and name in self.attributes:
            return f".{name} (only {self.attributes[name]} sets it)"
        return name if WORDS.intersection(words_of(name)) else None

    def _string(self, text: str) -> str | None:
        if text in self.classes or text in self.attributes or text in WORDS:
            return repr(text)
        # As the value of a TargetKind.
        return repr(text) if text.upper() in KINDS else None


def _is_bag(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.lstrip("_") in BAGS
        case _:
            pass
    return False


def spine(tree: Tree) -> list[Module]:
    """The modules of `core/` that are to know no feature."""
    return [m for m in tree.below(CORE) if m.name not in SEAMS and not _feature_of(m)]


def _feature_of(module: Module) -> str:
    """The feature whose folder a module is in; empty for the spine."""
    if not module.name.startswith(f"{CORE}."):
        return ""
    rest = module.path.partition("/core/")[2]
    folder = rest.partition("/")[0] if "/" in rest else ""
    return "" if folder in SPINE else folder


@dataclass(frozen=True)
class Declared:
    """What the classes of some modules declare."""

    flags: set[str]
    """Attributes that begin with nothing, or with a constant yes or no."""
    data: set[str]
    """Attributes that begin with a value of their own."""
    methods: set[str]
    """Methods that do something."""
    answers: set[str]
    """Methods that only return a constant yes or no: flags that are called."""

    @property
    def names(self) -> set[str]:
        """Everything that is declared."""
        return self.flags | self.data | self.methods | self.answers


def vocabulary_of(tree: Tree) -> Vocabulary:
    """Find the names of all features by who defines and who sets them."""
    folders: dict[str, list[Module]] = defaultdict(list)
    for module in tree.modules:
        folders[_feature_of(module)].append(module)
    shared = folders.pop("", [])
    known = {node.name for module in shared for node in _classes(module)}
    classes = {
        node.name
        for modules in folders.values()
        for module in modules
        for node in _classes(module)
        if is_public(node.name)
    }
    everybody = declared_by(node for module in shared for node in _classes(module)).names
    everybody.update(
        node.name for module in shared for node in module.nodes if isinstance(node, Function)
    )
    attributes = {}
    for feature, modules in folders.items():
        own = declared_by(node for module in modules for node in _classes(module))
        for name in (own.flags | own.data) - everybody:
            attributes[name] = feature
    flags = set_by_one(tree)
    answers = declared_by(node for module in spine(tree) for node in _classes(module)).answers
    return Vocabulary(
        frozenset(classes - known), attributes | flags, frozenset(answers.intersection(flags))
    )


def _classes(module: Module) -> Iterator[ast.ClassDef]:
    return (node for node in module.nodes if isinstance(node, ast.ClassDef))


def declared_by(classes: Iterable[ast.ClassDef]) -> Declared:
    """What these classes declare in their bodies and set in `self`."""
    found = Declared(set(), set(), set(), set())
    for node in classes:
        for statement in node.body:
            value = getattr(statement, "value", None)
            for target in assigned(statement):
                if isinstance(target, ast.Name):
                    (found.flags if _is_flag(value) else found.data).add(target.id)
            if isinstance(statement, Function):
                _declared_in(statement, found)
    return found


def _declared_in(method: Function, found: Declared) -> None:
    if any(named(decorator) == "property" for decorator in method.decorator_list):
        # That of a protocol says nothing about its value.
        (found.flags if _returns_flag(method, or_nothing=True) else found.data).add(method.name)
    else:
        (found.answers if _returns_flag(method) else found.methods).add(method.name)
    if method.name == "__init__":
        for node in ast.walk(method):
            for target in assigned(node):
                if isinstance(target, ast.Attribute) and named(target.value) == "self":
                    value = getattr(node, "value", None)
                    (found.flags if _is_flag(value) else found.data).add(target.attr)


def _is_flag(value: ast.AST | None) -> bool:
    """Whether a value is a constant yes or no, or nothing: what an absent feature leaves."""
    match value:
        case ast.Constant(value=constant):
            return constant is True or not constant
        case ast.Tuple(elts=[]) | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Call(args=[]):
            return True
        case ast.Name(id=name):
            return name.startswith(("NO_", "_NO_"))
        case _:
            pass
    return value is None


def _returns_flag(method: Function, *, or_nothing: bool = False) -> bool:
    body = method.body[1:] if ast.get_docstring(method) is not None else method.body
    match body:
        case [ast.Return(value=ast.Constant(value=bool()))]:
            return True
        case [] | [ast.Expr(value=ast.Constant())]:
            return or_nothing
        case _:
            pass
    return False


def named(node: ast.AST | None) -> str:
    """The last name of an expression; empty if it has none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            pass
    return ""


def set_by_one(tree: Tree) -> dict[str, str]:
    """Attributes of the spine's classes that nobody but one feature ever sets, and which one.

    What the modules that the spine imports declare as well is data that passes through it; what the
    spine itself changes is its own state.
    """
    modules = spine(tree)
    bases = {node.name: declared_by([node]) for module in modules for node in _classes(module)}
    candidates = set().union(*(d.flags | d.answers for d in bases.values()))
    candidates -= set().union(*(d.data for d in bases.values()))
    writers: dict[str, set[str]] = defaultdict(set)
    names = {module.name for module in modules}
    imported = {name for module in modules for name in imports_of(module)}
    called = {named(node) for module in modules for node in module.nodes}
    changes: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for function, changed in _changes(module).items():
            if function not in called:
                changes[function] |= changed
    passing = imported | {name.rpartition(".")[0] for name in imported}
    for module in tree.modules:
        feature = _feature_of(module)
        if module.name in names:
            candidates.difference_update(*_changes(module, called).values())
        elif feature:
            for name in _set_in_subclasses(module, _descendants(tree, feature, bases)):
                writers[name].add(feature)
        elif module.name in passing:
            declared = declared_by(_classes(module))
            candidates -= declared.flags | declared.data
        if module.name not in names and CORE in module.source:
            # Drivers and doors have objects of the spine in their hands as well.
            for name in _set_in_others(module, bases, changes):
                writers[name].add(feature or module.name)
    features = {_feature_of(module) for module in tree.modules}
    return {
        name: owner
        for name, owners in writers.items()
        for owner in owners
        if name in candidates and len(owners) == 1 and owner in features
    }


def _descendants(tree: Tree, feature: str, bases: Mapping[str, Declared]) -> dict[str, set[str]]:
    """The flags that each class of a feature has from the spine, by the names of its bases."""
    known = {name: declared.flags | declared.answers for name, declared in bases.items()}
    classes = [node for m in tree.below(f"{CORE}.{feature}") for node in _classes(m)]
    for _ in classes:  # Bases may come in any order, so look again until nothing is added.
        before = len(known)
        for node in classes:
            inherited = [known[named(base)] for base in node.bases if named(base) in known]
            if inherited and node.name not in known:
                known[node.name] = set().union(*inherited)
        if len(known) == before:
            break
    return known


def _set_in_subclasses(module: Module, known: Mapping[str, set[str]]) -> Iterator[str]:
    """Flags of the spine's classes to which subclasses give another value."""
    for node in _classes(module):
        inherited = set().union(*(known.get(named(base), set()) for base in node.bases))
        own = declared_by([node])
        # A method that does something is a moment of the seam, and no flag.
        yield from inherited & (own.names - own.methods)
        for inner in ast.walk(node):
            for target in assigned(inner):
                if isinstance(target, ast.Attribute) and target.attr in inherited:
                    yield target.attr


def _set_in_others(
    module: Module, bases: Mapping[str, Declared], changes: Mapping[str, set[str]]
) -> Iterator[str]:
    """Attributes of other objects that a module assigns, deletes, fills, empties or begins with, or
    lets a method of the spine change that the spine itself never calls."""
    for node in module.nodes:
        found: list[ast.expr] = assigned(node)
        match node:
            case ast.Attribute(attr=name) if name in changes:
                yield from changes[name]
            case ast.Delete():
                found = list(node.targets)
            case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in MUTATORS:
                found = [value]
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str(text)), *_]):
                yield text
            case ast.Call(func=function, keywords=keywords) if named(function) in bases:
                yield from (k.arg for k in keywords if k.arg in bases[named(function)].flags)
        for target in found:
            inner = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(inner, ast.Attribute) and named(inner.value) != "self":
                yield inner.attr


def _changes(module: Module, called: Container[str] | None = None) -> dict[str, set[str]]:
    """What each function of the spine, or those that the spine calls, changes for a reason: not to
    a default, in a reset or as a mere copy."""
    changes: dict[str, set[str]] = defaultdict(set)
    for function in module.nodes:
        if not isinstance(function, Function) or function.name == "__init__":
            continue
        if called is not None and function.name not in called:
            continue
        for node in ast.walk(function):
            changes[function.name].update(_changed(node))
    return changes


def _changed(node: ast.AST) -> Iterator[str]:
    value = getattr(node, "value", None)
    for target in assigned(node):
        inner = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(inner, ast.Attribute) and not (
            _is_nothing(value) or _is_copy(value, inner.attr)
        ):
            yield inner.attr
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=ast.Attribute(attr=owner))):
            if name in FILLERS:
                yield owner
        case _:
            pass


def _is_copy(value: ast.AST | None, name: str) -> bool:
    """Whether a value is the attribute of that name of something else, as a row of the store."""
    return isinstance(value, ast.Attribute) and value.attr == name


def _is_nothing(value: ast.AST | None) -> bool:
    return _is_flag(value) and not (isinstance(value, ast.Constant) and value.value is True)
