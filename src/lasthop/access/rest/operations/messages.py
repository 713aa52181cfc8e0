"""Operations on messages: publish, follow, replace, cancel and answer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lasthop.access.rest.operations.deferred import deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import answers, messages, replies, requests
else:
    answers, messages, replies, requests = deferred("answers", "messages", "replies", "requests")

_MESSAGE = "/v1/messages/{id}"

_PUBLISHING = "This serves the program that published the message: nothing is administered."

MESSAGES: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/v1/messages",
        summary="Publish one message, or many together",
        scope=Scope.PUBLISH,
        handler=None,
        body=requests.Publication,
        lines=True,
        once=True,
        answers={
            202: (answers.Accepted, answers.AcceptedMany),
            200: (answers.Accepted, answers.AcceptedMany),
        },
        refusals=(404, 409, 415, 422),
        command="`lasthop push` publishes messages.",
    ),
    Operation(
        method="GET",
        path=_MESSAGE,
        summary="Show what happened to a message",
        scope=Scope.PUBLISH,
        handler=messages.status,
        query=messages.StatusQuery,
        answers={200: answers.MessageStatus},
        refusals=(404,),
        command="`lasthop push --wait` waits for the outcome, and `lasthop explain` shows every"
        " decision.",
    ),
    Operation(
        method="PUT",
        path=_MESSAGE,
        summary="Replace a message where it has not been sent",
        scope=Scope.PUBLISH,
        handler=messages.replace,
        body=requests.Publication,
        answers={200: answers.Replaced},
        refusals=(404, 409, 415, 422),
        command=_PUBLISHING,
    ),
    Operation(
        method="DELETE",
        path=_MESSAGE,
        summary="Cancel a message where it has not been sent",
        scope=Scope.PUBLISH,
        handler=messages.cancel,
        answers={200: answers.Cancelled},
        refusals=(404, 409),
        command=_PUBLISHING,
    ),
    Operation(
        method="GET",
        path=f"{_MESSAGE}/reply",
        summary="Show a device's answer to a message",
        scope=Scope.PUBLISH,
        handler=replies.get_reply,
        query=replies.ReplyQuery,
        answers={200: bytes},
        refusals=(404,),
        command=_PUBLISHING,
    ),
    Operation(
        method="POST",
        path=f"{_MESSAGE}/reply",
        summary="Answer a message that a device sent",
        scope=Scope.PUBLISH,
        handler=replies.reply,
        body=requests.Publication,
        once=True,
        answers={202: answers.Accepted, 200: answers.Accepted},
        refusals=(404, 409, 415, 422),
        command=_PUBLISHING,
    ),
    Operation(
        method="GET",
        path=f"{_MESSAGE}/replies",
        summary="Show all answers to a message, and which devices have not answered",
        scope=Scope.PUBLISH,
        handler=replies.get_replies,
        query=replies.GatherQuery,
        answers={200: replies.Replies},
        refusals=(404,),
        command=_PUBLISHING,
    ),
)

EXPLAIN = Operation(
    method="GET",
    path=f"{_MESSAGE}/explain",
    summary="Explain one delivery, with the reason of every decision",
    scope=Scope.PUBLISH,
    handler=messages.explain,
    query=messages.ExplainQuery,
    answers={200: Any},
    refusals=(404,),
    command="`lasthop explain` also reads a data directory, and prints one decision per line.",
)
"""The operation that explains a delivery; only gateways that keep a history of deliveries have
it."""
