"""Operations on how much topics remember."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Given
from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import resources, topic_memory
else:
    resources, topic_memory = deferred("resources", "topic_memory")

_TOPIC = "/v1/topics/{topic}/history"
_APP = "/v1/apps/{app}/history"

_SIZES = {"bytes": Given(size=True)}
_SAYS = "{topic} remembers up to {messages} messages and {bytes} bytes for {age:g} seconds"
_ALL = "topics remember up to {messages} messages and {bytes} bytes for {age:g} seconds"

HISTORY: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path=_TOPIC,
        summary="Show how much a topic remembers",
        scope=Scope.PUBLISH,
        handler=topic_memory.show,
        answers={200: topic_memory.TopicMemory},
        command=Command("topic history", "news"),
    ),
    Operation(
        method="PUT",
        path=_TOPIC,
        summary="Set how much a topic remembers",
        scope=Scope.DEVICES,
        handler=topic_memory.change,
        body=resources.HistoryTerms,
        answers={200: topic_memory.TopicMemory},
        refusals=(415,),
        command=Command(
            "topic remember",
            "news --messages 100 --age 3600\nnews --messages 0",
            given=_SIZES,
            says=_SAYS,
        ),
    ),
    Operation(
        method="DELETE",
        path=_TOPIC,
        summary="Let a topic remember as much as any topic of its app",
        scope=Scope.DEVICES,
        handler=topic_memory.forget,
        answers={200: topic_memory.TopicMemory},
        command=Command("topic remember-usual", "news", says=_SAYS),
    ),
    Operation(
        method="GET",
        path=_APP,
        summary="Show how much topics of the app remember",
        scope=Scope.PUBLISH,
        handler=topic_memory.show,
        answers={200: topic_memory.TopicMemory},
        refusals=(404,),
        command=Command("history show", says=_ALL),
    ),
    Operation(
        method="PUT",
        path=_APP,
        summary="Set how much topics of the app remember that have no terms of their own",
        scope=Scope.DEVICES,
        handler=topic_memory.change,
        body=resources.HistoryTerms,
        answers={200: topic_memory.TopicMemory},
        refusals=(404, 415),
        command=Command("history set", "--messages 100 --age 3600", given=_SIZES, says=_ALL),
    ),
    Operation(
        method="DELETE",
        path=_APP,
        summary="Let topics of the app remember as much as the configuration says",
        scope=Scope.DEVICES,
        handler=topic_memory.forget,
        answers={200: topic_memory.TopicMemory},
        refusals=(404,),
        command=Command("history clear", says=_ALL),
    ),
)
