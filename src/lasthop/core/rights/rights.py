"""The rights of callers, compiled from rules once for each caller.

A caller is a device, a credential, or a user who shows a signed token. What a rule denies is
denied; otherwise what a rule allows is allowed; otherwise it depends on what the caller has without
rules. An answer is remembered for each caller, so that a message costs a look into a dictionary,
however many rules there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lasthop.core.names import ONE
from lasthop.core.rights.patterns import TargetPattern, fits, pieces_of
from lasthop.core.rights.people import USER, People
from lasthop.core.rights.rule import ALL_APPS, OF_DEVICES, SENT_BY, AccessRule, Verb
from lasthop.errors import Forbidden
from lasthop.message import Target, TargetKind

MAX_CALLERS = 10_000
"""Callers whose rights are kept compiled; beyond this all are compiled again. Some 2 kB each."""

MAX_ANSWERS = 256
"""Answers that are remembered for one caller: most send to few targets."""

OWN_DEVICE = AccessRule(
    name="own-device", who=("device:*",), allow=(Verb.SEND,), on=("device:{device}",)
)
"""The rule that every gateway has: a device may send to itself, since nobody else gets that."""


NAMED = ("device", "user")
"""What may stand in braces in the targets of a rule."""


class NoRight(Forbidden):
    """The error for what no rule allows, or a rule denies; `rule` names the rule that decided."""

    code = "no_right"


class Who(NamedTuple):
    """A caller as rules know it."""

    app: str
    kind: str
    """What kind of caller it is: `device`, `credential` or `user`."""
    name: str
    user: str = ""
    """The user that a device belongs to, or that shows a signed token; empty if none."""
    roles: frozenset[str] = frozenset()
    """The roles of a user who shows a signed token."""

    @property
    def names(self) -> Mapping[str, str]:
        """What `{device}` and `{user}` stand for in rules about the caller."""
        if self.kind == "device":
            return {"device": self.name, "user": self.user}
        return {"user": self.user} if self.kind == "user" else {}


class RightsAnswer(NamedTuple):
    """Whether something is allowed, by which rule, and why in words."""

    allowed: bool
    rule: str
    """The name of the rule that decided; empty if none did."""
    reason: str


class CallerRights:
    """The rights of one caller, compiled from the rules that are about it."""

    __slots__ = ("_allow", "_answers", "_deny", "who", "without")

    def __init__(self, who: Who, rules: Sequence[AccessRule], without: frozenset[Verb]) -> None:
        self.who = who
        self.without = without
        """The verbs that the caller has on everything, without a rule."""
        self._allow = _by_verb([(r, r.allow) for r in rules if applies(r, who)], who.names)
        self._deny = _by_verb([(r, r.deny) for r in rules if applies(r, who)], who.names)
        self._answers: dict[tuple[Verb, str, str], RightsAnswer] = {}

    def answer(self, verb: Verb, kind: str, name: str) -> RightsAnswer:
        """Return whether the caller may do something to a target; the name of a topic may be a
        pattern, all topics of which must then be allowed."""
        asked = verb, kind, name
        answer = self._answers.get(asked)
        if answer is None:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            answer = self._answers[asked] = self._decide(verb, kind, name)
        return answer

    def any(self, verb: Verb) -> bool:
        """Return whether the caller may do something to any target at all."""
        return verb in self.without or bool(self._allow.get(verb))

    def _decide(self, verb: Verb, kind: str, name: str) -> RightsAnswer:
        for rule, on in self._deny.get(verb, ()):
            if on.meets(kind, name):
                return RightsAnswer(
                    False, rule.name, f"the rule {rule.name} denies {verb} on {on.text}"
                )
        for rule, on in self._allow.get(verb, ()):
            if on.covers(kind, name):
                return RightsAnswer(
                    True, rule.name, f"the rule {rule.name} allows {verb} on {on.text}"
                )
        if verb in self.without:
            return RightsAnswer(True, "", f"{verb} needs no rule, and none denies it")
        return RightsAnswer(False, "", f"no rule allows {verb} on {kind}:{name}")


def _by_verb(
    rules: Sequence[tuple[AccessRule, Sequence[Verb]]], names: Mapping[str, str]
) -> dict[Verb, list[tuple[AccessRule, TargetPattern]]]:
    found: dict[Verb, list[tuple[AccessRule, TargetPattern]]] = {}
    for rule, verbs in rules:
        # A device of no user has nothing that is said of users, and a user without a device nothing
        # that is said of devices.
        entries = [
            on
            for on in rule.on
            if not names or all(names.get(name) for name in NAMED if f"{{{name}}}" in on)
        ]
        patterns = [TargetPattern(on, names) for on in entries]
        for verb in verbs:
            found.setdefault(verb, []).extend((rule, on) for on in patterns)
    return found


def applies(rule: AccessRule, who: Who) -> bool:
    """Return whether a rule is about a caller."""
    if rule.app not in (ALL_APPS, who.app):
        return False
    for entry in rule.who:
        kind, _, name = entry.partition(":")
        if entry == ONE or (kind == who.kind and fits(pieces_of(name), who.name)):
            return True
        if kind == "user" and who.user and fits(pieces_of(name), who.user):
            return True
        if kind == "role" and any(fits(pieces_of(name), role) for role in who.roles):
            return True
    return False


class Rights:
    """The rights of all callers under one set of rules."""

    def __init__(
        self,
        rules: Sequence[AccessRule],
        *,
        least: bool,
        user_of: Callable[[str, str], str],
        narrow: Callable[[str, str], bool],
        people: People | None = None,
    ) -> None:
        """`least`: a device may do nothing without a rule. `user_of` returns the user of a device
        by app and name; `narrow` returns whether a credential has nothing without a rule."""
        self._rules = [OWN_DEVICE, *rules] if least else rules
        self._devices = frozenset[Verb]() if least else frozenset(OF_DEVICES)
        self._user_of = user_of
        self._narrow = narrow
        self._people = people or People(None)
        self._callers: dict[tuple[str, str, str], CallerRights] = {}

    def device(self, app: str, name: str) -> CallerRights:
        """Return the rights of a device."""
        user = self._user_of(app, name)
        known = self._callers.get((app, "device", name))
        if known is not None and known.who.user == user:
            return known
        return self._keep(CallerRights(Who(app, "device", name, user), self._rules, self._devices))

    def credential(self, app: str, name: str) -> CallerRights:
        """Return the rights of a credential within an app, or those of a user whose name as a
        caller this is. What its scopes do not give is refused before rules are asked."""
        if name.startswith(USER):
            return self._of_user(app, name)
        known = self._callers.get((app, "credential", name))
        if known is not None:
            return known
        without = frozenset[Verb]() if self._narrow(app, name) else frozenset(Verb)
        return self._keep(CallerRights(Who(app, "credential", name), self._rules, without))

    def _of_user(self, app: str, name: str) -> CallerRights:
        user = name.removeprefix(USER)
        who = Who(app, "user", user, user, self._people.roles(name))
        without = frozenset[Verb]() if self._people.ruled(name) else frozenset(Verb)
        known = self._callers.get((app, "user", user))
        if known is not None and (known.who, known.without) == (who, without):
            return known
        return self._keep(CallerRights(who, self._rules, without))

    def _keep(self, rights: CallerRights) -> CallerRights:
        if len(self._callers) >= MAX_CALLERS:
            self._callers.clear()
        who = rights.who
        self._callers[who.app, who.kind, who.name] = rights
        return rights

    def check_device(self, app: str, name: str, verb: Verb, target: Target) -> None:
        """Raise `NoRight` unless a device may do something to a target."""
        _check(self.device(app, name), verb, target)

    def check_message(self, app: str, source: str, target: Target) -> None:
        """Raise `NoRight` unless the source of a message, a device or a publisher, may send it. The
        gateway and surrogates may, and an answer to a publisher is always possible."""
        kind, _, name = source.partition(":")
        if target.kind is TargetKind.PUBLISHER or kind not in ("device", "publisher"):
            return
        rights = self.device(app, name) if kind == "device" else self.credential(app, name)
        _check(rights, SENT_BY[target.kind], target)


def _check(rights: CallerRights, verb: Verb, target: Target) -> None:
    answer = rights.answer(verb, target.kind, target.name)
    if not answer.allowed:
        rule = {"rule": answer.rule} if answer.rule else {}
        raise NoRight(answer.reason, verb=str(verb), target=str(target), **rule)
