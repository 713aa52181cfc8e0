"""Topics, and who subscribes to them on which terms."""

from __future__ import annotations

from lasthop.access.rest import answers, devices, topics
from lasthop.access.rest.operations.operation import Operation
from lasthop.core.apps.credentials import Scope
from lasthop.decision.volume.terms import TopicTerms

_DEVICE = "/v1/devices/{name}"
_SUBSCRIPTION = "/v1/devices/{name}/subscriptions/{topic}"

TOPICS: tuple[Operation, ...] = (
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
)
