"""The right that an operation of the REST door needs beside its scope.

Messages are checked by the gateway itself, for every door. Here are the operations that name a
device, a group or a topic without sending a message, and those that show bodies.
"""

from __future__ import annotations

from collections.abc import Mapping

from lasthop.access.callers import Caller
from lasthop.access.live_gateway import LiveGateway
from lasthop.access.rest.operations import Operation
from lasthop.core.apps.credentials import Scope
from lasthop.core.rights.rights import NoRight
from lasthop.core.rights.rule import Verb
from lasthop.message import Target, TargetKind

NEEDS: Mapping[str, Verb] = {
    "get_messages_id_reply": Verb.SEE_BODIES,
    "get_messages_id_replies": Verb.SEE_BODIES,
    "get_streams_id_content": Verb.SEE_BODIES,
    "post_services_name_operation": Verb.SEE_BODIES,
    "put_topics_topic": Verb.PUBLISH,
    "get_topics_topic_history": Verb.PUBLISH,
    "delete_topics_topic": Verb.PUBLISH,
}
"""The right that an operation needs, by its id; one of the scope `devices` needs `administer`."""

NAMED: Mapping[str, tuple[TargetKind, str]] = {
    "devices": (TargetKind.DEVICE, "name"),
    "groups": (TargetKind.GROUP, "name"),
    "queues": (TargetKind.QUEUE, "name"),
    "topics": (TargetKind.TOPIC, "topic"),
}
"""The kind of target that a path is about, by its first word, and the parameter with its name."""


def check_right(
    live: LiveGateway, caller: Caller, operation: Operation, parameters: Mapping[str, str]
) -> None:
    """Raise `NoRight` if a rule keeps the caller from an operation."""
    verb = NEEDS.get(operation.id)
    if verb is None and operation.scope is Scope.DEVICES:
        verb = Verb.ADMINISTER
    rights = live.look(lambda gateway: gateway.deliveries.rights)
    if rights is None or verb is None:
        return
    target = target_of(operation, parameters)
    answer = rights.credential(caller.app, caller.name).answer(verb, target.kind, target.name)
    if not answer.allowed:
        raise NoRight(answer.reason)


def target_of(operation: Operation, parameters: Mapping[str, str]) -> Target:
    """Return the target that a request is about; the whole app if it names none."""
    kind, parameter = NAMED.get(operation.path.split("/")[2], (TargetKind.APP, ""))
    name = parameters.get(parameter)
    return Target(TargetKind.APP, "") if name is None else Target(kind, name)
