"""Every operation of the REST door, once: the router and the OpenAPI document are made from this
table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from starlette.responses import Response

from lasthop.access.rest import (
    addresses,
    answers,
    circles,
    credentials,
    devices,
    messages,
    replies,
    services,
    surrogates,
    topics,
    wishes,
)
from lasthop.access.rest.administration import (
    AddressTarget,
    DeviceChange,
    NewCredential,
    NewDevice,
)
from lasthop.access.rest.exchange import Exchange
from lasthop.access.rest.overseer import SurrogateInfo
from lasthop.access.rest.requests import Publication
from lasthop.core.credentials import Scope
from lasthop.core.feeds.terms import TopicTerms
from lasthop.decision.preferences import Preferences

Handler: TypeAlias = Callable[[Exchange], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something that can be asked for."""

    method: str
    path: str
    summary: str
    scope: Scope
    handler: Handler | None
    """None for the hot route, which the door serves itself."""
    body: Any = None
    """The type of the body, if there is one."""
    optional: bool = False
    """The body may be left out."""
    lines: bool = False
    """The body may also be many of them, in an array or one to a line."""
    query: type | None = None
    answers: dict[int, Any] = field(default_factory=dict)
    """Types by status; `bytes` for content of any type."""
    refusals: tuple[int, ...] = ()
    """Statuses beside those that every operation can have."""
    once: bool = False
    """Takes an Idempotency-Key."""

    @property
    def id(self) -> str:
        """A name for generated clients."""
        words = [w.strip("{}") for w in self.path.split("/")[2:]]
        return "_".join([self.method.lower(), *words])


_MESSAGE = "/v1/messages/{id}"
_DEVICE = "/v1/devices/{name}"
_ADDRESS = "/v1/addresses/{address}"
_SUBSCRIPTION = "/v1/devices/{name}/subscriptions/{topic}"

OPERATIONS: tuple[Operation, ...] = (
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
    Operation(
        method="GET",
        path="/v1/services",
        summary="The services that devices offer",
        scope=Scope.PUBLISH,
        handler=services.list_services,
        query=services.FindQuery,
        answers={200: services.ServiceList},
    ),
    Operation(
        method="GET",
        path="/v1/services/{name}",
        summary="A service in all its versions: NAME, or NAME@VERSION for one of them",
        scope=Scope.PUBLISH,
        handler=services.show,
        answers={200: services.ServiceList},
        refusals=(404,),
    ),
    Operation(
        method="POST",
        path="/v1/services/{name}/{operation}",
        summary="Ask a service, and wait for its answer",
        scope=Scope.PUBLISH,
        handler=services.ask,
        query=services.AskQuery,
        body=bytes,
        answers={200: bytes},
        refusals=(404, 422),
    ),
    Operation(
        method="POST",
        path="/v1/devices",
        summary="Register a device; its token is shown once",
        scope=Scope.DEVICES,
        handler=devices.register,
        body=NewDevice,
        answers={201: answers.DeviceInfo},
        refusals=(409, 415),
    ),
    Operation(
        method="GET",
        path="/v1/devices",
        summary="The devices of the app",
        scope=Scope.DEVICES,
        handler=devices.list_devices,
        query=devices.ListQuery,
        answers={200: answers.DeviceList},
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/preferences",
        summary="What a device prefers: links, limits, queues, quiet hours",
        scope=Scope.DEVICES,
        handler=wishes.show,
        answers={200: Preferences},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path=f"{_DEVICE}/preferences",
        summary="Say what a device prefers",
        scope=Scope.DEVICES,
        handler=wishes.change,
        body=Preferences,
        answers={200: Preferences},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/budgets",
        summary="What is used of a device's limits",
        scope=Scope.DEVICES,
        handler=wishes.budgets,
        answers={200: wishes.BudgetInfo},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path=_DEVICE,
        summary="A device, and how it is reached",
        scope=Scope.DEVICES,
        handler=devices.show,
        answers={200: answers.DeviceInfo},
        refusals=(404,),
    ),
    Operation(
        method="PATCH",
        path=_DEVICE,
        summary="Change a device's user, zone or capabilities",
        scope=Scope.DEVICES,
        handler=devices.change,
        body=DeviceChange,
        answers={200: answers.DeviceInfo},
        refusals=(404, 415),
    ),
    Operation(
        method="DELETE",
        path=_DEVICE,
        summary="Remove a device",
        scope=Scope.DEVICES,
        handler=devices.remove,
        query=devices.RemoveQuery,
        answers={200: answers.Removed},
        refusals=(404,),
    ),
    Operation(
        method="POST",
        path=f"{_DEVICE}/token",
        summary="Give a device a new token; it is shown once",
        scope=Scope.DEVICES,
        handler=devices.rotate,
        answers={200: answers.DeviceInfo},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path=_SUBSCRIPTION,
        summary="Subscribe a device to a topic",
        scope=Scope.DEVICES,
        handler=topics.subscribe,
        query=topics.SubscribeQuery,
        body=TopicTerms,
        optional=True,
        answers={200: answers.Subscribed},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/subscriptions",
        summary="A device's subscriptions, and how much of each waits where",
        scope=Scope.DEVICES,
        handler=topics.list_subscriptions,
        answers={200: topics.SubscriptionList},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path=f"{_DEVICE}/rules",
        summary="Let a device's subscriptions follow its context",
        scope=Scope.DEVICES,
        handler=topics.set_rules,
        body=topics.Rules,
        answers={200: topics.Rules},
        refusals=(404, 415),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/rules",
        summary="The rules that a device's subscriptions follow",
        scope=Scope.DEVICES,
        handler=topics.get_rules,
        answers={200: topics.Rules},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path="/v1/topics/{topic}",
        summary="Advertise a topic",
        scope=Scope.PUBLISH,
        handler=topics.advertise,
        body=topics.Advertisement,
        optional=True,
        answers={200: topics.TopicInfo},
        refusals=(409,),
    ),
    Operation(
        method="DELETE",
        path="/v1/topics/{topic}",
        summary="Withdraw a topic; its subscribers are told",
        scope=Scope.PUBLISH,
        handler=topics.withdraw,
        answers={200: topics.TopicWithdrawal},
        refusals=(404, 409),
    ),
    Operation(
        method="GET",
        path="/v1/topics",
        summary="The topics that are advertised",
        scope=Scope.PUBLISH,
        handler=topics.list_topics,
        answers={200: topics.TopicList},
    ),
    Operation(
        method="DELETE",
        path=_SUBSCRIPTION,
        summary="End a device's subscription",
        scope=Scope.DEVICES,
        handler=devices.unsubscribe,
        answers={200: answers.Subscribed},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path="/v1/addresses",
        summary="The app's client addresses that stand for users, topics and devices",
        scope=Scope.DEVICES,
        handler=addresses.list_addresses,
        answers={200: answers.AddressList},
    ),
    Operation(
        method="PUT",
        path=_ADDRESS,
        summary="Let a client address of PAP stand for a user, a topic, a device or everyone",
        scope=Scope.DEVICES,
        handler=addresses.point,
        body=AddressTarget,
        answers={200: answers.AddressInfo},
        refusals=(415,),
    ),
    Operation(
        method="DELETE",
        path=_ADDRESS,
        summary="Let a client address stand for nobody any more",
        scope=Scope.DEVICES,
        handler=addresses.remove,
        answers={200: answers.AddressInfo},
        refusals=(404,),
    ),
    Operation(
        method="POST",
        path="/v1/credentials",
        summary="Make a credential; its token is shown once",
        scope=Scope.ADMIN,
        handler=credentials.admit,
        body=NewCredential,
        answers={201: answers.CredentialInfo},
        refusals=(415,),
    ),
    Operation(
        method="GET",
        path="/v1/credentials",
        summary="The credentials of the app",
        scope=Scope.ADMIN,
        handler=credentials.list_credentials,
        answers={200: answers.CredentialList},
    ),
    Operation(
        method="DELETE",
        path="/v1/credentials/{name}",
        summary="Revoke the credentials of a name",
        scope=Scope.ADMIN,
        handler=credentials.dismiss,
        answers={200: answers.Revoked},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path="/v1/groups/{name}",
        summary="Make a group, or change it",
        scope=Scope.DEVICES,
        handler=circles.make_group,
        body=circles.GroupTerms,
        optional=True,
        answers={200: circles.GroupInfo},
        refusals=(413, 415),
    ),
    Operation(
        method="GET",
        path="/v1/groups/{name}",
        summary="A group and its members",
        scope=Scope.DEVICES,
        handler=circles.show_group,
        query=circles.MembersQuery,
        answers={200: circles.GroupInfo},
        refusals=(404,),
    ),
    Operation(
        method="DELETE",
        path="/v1/groups/{name}",
        summary="Remove a group",
        scope=Scope.DEVICES,
        handler=circles.remove_group,
        answers={200: circles.Dissolved},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path="/v1/groups",
        summary="The groups of the app",
        scope=Scope.DEVICES,
        handler=circles.list_groups,
        answers={200: circles.GroupList},
    ),
    Operation(
        method="PUT",
        path="/v1/groups/{name}/members/{device}",
        summary="Put a device into a group",
        scope=Scope.DEVICES,
        handler=circles.add_member,
        answers={200: circles.Membership},
        refusals=(404,),
    ),
    Operation(
        method="DELETE",
        path="/v1/groups/{name}/members/{device}",
        summary="Take a device out of a group",
        scope=Scope.DEVICES,
        handler=circles.remove_member,
        answers={200: circles.Membership},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path="/v1/queues/{name}",
        summary="Make a queue, or change it",
        scope=Scope.DEVICES,
        handler=circles.make_queue,
        body=circles.QueueRules,
        optional=True,
        answers={200: circles.QueueInfo},
        refusals=(413, 415),
    ),
    Operation(
        method="GET",
        path="/v1/queues/{name}",
        summary="A queue and its consumers",
        scope=Scope.DEVICES,
        handler=circles.show_queue,
        query=circles.MembersQuery,
        answers={200: circles.QueueInfo},
        refusals=(404,),
    ),
    Operation(
        method="DELETE",
        path="/v1/queues/{name}",
        summary="Remove a queue that is empty",
        scope=Scope.DEVICES,
        handler=circles.remove_queue,
        answers={200: circles.Dissolved},
        refusals=(
            404,
            409,
        ),
    ),
    Operation(
        method="GET",
        path="/v1/queues",
        summary="The queues of the app",
        scope=Scope.DEVICES,
        handler=circles.list_queues,
        answers={200: circles.QueueList},
    ),
    Operation(
        method="PUT",
        path="/v1/queues/{name}/consumers/{device}",
        summary="Let a device take from a queue",
        scope=Scope.DEVICES,
        handler=circles.add_consumer,
        answers={200: circles.Membership},
        refusals=(404,),
    ),
    Operation(
        method="DELETE",
        path="/v1/queues/{name}/consumers/{device}",
        summary="Let a device take from a queue no longer",
        scope=Scope.DEVICES,
        handler=circles.remove_consumer,
        answers={200: circles.Membership},
        refusals=(404,),
    ),
    Operation(
        method="GET",
        path="/v1/surrogates",
        summary="The surrogates of all apps",
        scope=Scope.ADMIN,
        handler=surrogates.list_surrogates,
        answers={200: surrogates.SurrogateList},
    ),
    Operation(
        method="GET",
        path="/v1/surrogates/{app}",
        summary="How an app's surrogate is",
        scope=Scope.ADMIN,
        handler=surrogates.show_surrogate,
        answers={200: SurrogateInfo},
        refusals=(404,),
    ),
    Operation(
        method="POST",
        path="/v1/surrogates/{app}/reload",
        summary="Load an app's surrogate anew; the old one stays when that fails",
        scope=Scope.ADMIN,
        handler=surrogates.reload_surrogate,
        answers={200: SurrogateInfo},
        refusals=(404, 409),
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
