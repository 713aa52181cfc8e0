"""Messages: published, followed, changed, answered."""

from __future__ import annotations

from typing import Any

from lasthop.access.rest import answers, messages, replies, topics
from lasthop.access.rest.operations.operation import Operation
from lasthop.access.rest.requests import Publication
from lasthop.core.apps.credentials import Scope

_MESSAGE = "/v1/messages/{id}"

MESSAGES: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/v1/messages",
        summary="Publish one message, or many together",
        scope=Scope.PUBLISH,
        handler=None,
        body=Publication,
        lines=True,
        once=True,
        answers={
            202: answers.Accepted | answers.AcceptedMany,
            200: answers.Accepted | answers.AcceptedMany,
        },
        refusals=(404, 409, 415, 422),
    ),
    Operation(
        method="GET",
        path=_MESSAGE,
        summary="What became of a message",
        scope=Scope.PUBLISH,
        handler=messages.status,
        query=messages.StatusQuery,
        answers={200: answers.MessageStatus},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path=_MESSAGE,
        summary="Replace a message where it has not been sent",
        scope=Scope.PUBLISH,
        handler=messages.replace,
        body=Publication,
        answers={200: answers.Replaced},
        refusals=(404, 409, 415, 422),
    ),
    Operation(
        method="PATCH",
        path=_MESSAGE,
        summary="Change what a message is worth; devices that keep it move it, or forget it",
        scope=Scope.PUBLISH,
        handler=topics.change_rank,
        body=topics.RankChange,
        answers={200: topics.Reranked},
        refusals=(404, 415),
    ),
    Operation(
        method="DELETE",
        path=_MESSAGE,
        summary="Take a message back where it has not been sent",
        scope=Scope.PUBLISH,
        handler=messages.cancel,
        answers={200: answers.Cancelled},
        refusals=(404, 409),
    ),
    Operation(
        method="GET",
        path=f"{_MESSAGE}/reply",
        summary="A device's answer to a message",
        scope=Scope.PUBLISH,
        handler=replies.get_reply,
        query=replies.ReplyQuery,
        answers={200: bytes},
        refusals=(404,),
    ),
    Operation(
        method="POST",
        path=f"{_MESSAGE}/reply",
        summary="Answer a message that a device sent",
        scope=Scope.PUBLISH,
        handler=replies.reply,
        body=Publication,
        once=True,
        answers={202: answers.Accepted, 200: answers.Accepted},
        refusals=(404, 409, 415, 422),
    ),
    Operation(
        method="GET",
        path=f"{_MESSAGE}/replies",
        summary="The answers of everyone to a message, and who has not answered",
        scope=Scope.PUBLISH,
        handler=replies.get_replies,
        query=replies.GatherQuery,
        answers={200: replies.Replies},
        refusals=(404,),
    ),
)

EXPLAIN = Operation(
    method="GET",
    path=f"{_MESSAGE}/explain",
    summary="The story of one delivery, with the reason of every decision",
    scope=Scope.PUBLISH,
    handler=messages.explain,
    query=messages.ExplainQuery,
    answers={200: Any},
    refusals=(404,),
)
"""There only if somebody tells stories."""
