"""All rules of a gateway: those of its configuration, and those that administrators have added."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.core.apps.credentials import Credentials
from lasthop.core.deliveries import Deliveries
from lasthop.core.rights.people import USER, People
from lasthop.core.rights.rights import Rights, RightsAnswer
from lasthop.core.rights.rule import ALL_APPS, AccessRule, Verb, checked
from lasthop.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded
from lasthop.message import Target, TargetKind
from lasthop.store.commit import MemoryRow

MEMORY = "rule:"
"""The prefix of a rule's app and name in the store's table of memories."""

MAX_RULES = 1000
"""Rules that administrators may add: each caller's rights are compiled from all of them."""

_decode = msgspec.json.Decoder(AccessRule).decode


def stored_rules(memories: Iterable[MemoryRow]) -> list[AccessRule]:
    """Return the rules among what a store remembers."""
    found = (row for row in memories if row.device == 0 and row.name.startswith(MEMORY))
    return [_decode(row.state) for row in found]


class RuleBook:
    """The rules in force, from which the rights of callers are made."""

    def __init__(
        self,
        deliveries: Deliveries,
        credentials: Credentials,
        configured: Iterable[AccessRule],
        people: People,
        *,
        least: bool,
    ) -> None:
        self._deliveries = deliveries
        self._credentials = credentials
        self._people = people
        self._configured = {(rule.app, rule.name): rule for rule in configured}
        self._added: dict[tuple[str, str], AccessRule] = {}
        self._least = least
        """Whether a device may do nothing without a rule."""

    def restore(self, memories: Iterable[MemoryRow]) -> None:
        """Restore the rules that were added before a restart."""
        self._added = {(rule.app, rule.name): rule for rule in stored_rules(memories)}
        self.refresh()

    def refresh(self) -> None:
        """Compile the rights of all callers again, because rules or credentials have changed."""
        ruled = self._added or self._configured or self._least
        needed = ruled or self._credentials.narrow or self._people.expected
        self._deliveries.rights = self.rights() if needed else None

    def rights(self) -> Rights:
        """Return the rights of all callers under the present rules."""
        return Rights(
            [*self._configured.values(), *self._added.values()],
            least=self._least,
            user_of=self._user_of,
            narrow=lambda app, name: (app, name) in self._credentials.narrow,
            people=self._people,
        )

    def _user_of(self, app: str, name: str) -> str:
        device = self._deliveries.registry.find(app, name)
        return "" if device is None else device.record.user

    def of(self, app: str) -> list[tuple[AccessRule, bool]]:
        """Return the rules that hold in an app, each with whether it is from the configuration."""
        found = [(rule, True) for rule in self._configured.values()]
        found += [(rule, False) for rule in self._added.values()]
        return [(rule, fixed) for rule, fixed in found if rule.app in (ALL_APPS, app)]

    def add(self, rule: AccessRule) -> None:
        """Add a rule, or put it in the place of an added one of this name."""
        at = rule.app, rule.name
        if at in self._configured:
            raise Conflict("a rule of this name is in the configuration", rule=rule.name)
        if at not in self._added and len(self._added) >= MAX_RULES:
            raise QuotaExceeded("too many rules", retry_after=60, limit=MAX_RULES)
        self._added[at] = checked(rule)
        self._note(at, msgspec.json.encode(rule))

    def remove(self, app: str, name: str) -> AccessRule:
        """Remove an added rule of an app, or of all apps, and return it."""
        for at in ((app, name), (ALL_APPS, name)):
            if at in self._added:
                rule = self._added.pop(at)
                self._note(at, b"")
                return rule
            if at in self._configured:
                raise Conflict("this rule is in the configuration; remove it there", rule=name)
        raise NotFound("no such rule", app=app, rule=name)

    def _note(self, at: tuple[str, str], state: bytes) -> None:
        self._deliveries.commits.open.remember(0, f"{MEMORY}{at[0]}/{at[1]}", state)
        self._deliveries.commits.hurry()
        self.refresh()

    def explain(self, app: str, who: str, verb: Verb, target: Target) -> RightsAnswer:
        """Return whether `device:NAME`, `credential:NAME` or `user:NAME` may do something, and
        which rule decides. Whether the scopes of a caller allow it is not a matter of rules."""
        kind, _, name = who.partition(":")
        rights = self._deliveries.rights or self.rights()
        if kind == "device":
            self._deliveries.registry.named(app, name)
            caller = rights.device(app, name)
        elif kind == "credential":
            if not self._credentials.named(app, name):
                raise NotFound("no such credential", app=app, name=name)
            caller = rights.credential(app, name)
        elif kind == "user" and name:
            caller = rights.credential(app, USER + name)
        else:
            raise InvalidRequest(
                "rights are those of device:NAME, credential:NAME or user:NAME", who=who
            )
        return caller.answer(verb, target.kind, target.name)


def parse_asked(text: str) -> Target:
    """Return the target of a question about rights, in which a topic may be a pattern."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in set(TargetKind):
        raise InvalidRequest("a target is KIND:NAME, such as topic:news.# or device:phone", on=text)
    return Target(TargetKind(kind), name)
