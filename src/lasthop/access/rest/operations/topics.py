"""Operations on topics, on the subscriptions of devices, and on the rank of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Given
from lasthop.access.rest.operations.deferred import Deferred, deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import answers, devices, resources, topics
    from lasthop.decision.volume.terms import TopicTerms
else:
    answers, devices, resources, topics = deferred("answers", "devices", "resources", "topics")
    TopicTerms = Deferred("lasthop.decision.volume.terms", "TopicTerms")

_DEVICE = "/v1/devices/{name}"
_SUBSCRIPTION = "/v1/devices/{name}/subscriptions/{topic}"

TOPICS: tuple[Operation, ...] = (
    Operation(
        method="PUT",
        path=_SUBSCRIPTION,
        summary="Subscribe a device to a topic",
        scope=Scope.DEVICES,
        handler=topics.subscribe,
        query=resources.SubscribeQuery,
        body=TopicTerms,
        optional=True,
        answers={200: answers.Subscribed},
        refusals=(404,),
        command=Command(
            "device subscribe",
            "phone news\nphone news --max 8 --threshold 3 --mode on-line",
            given={
                "times": Given(flag="--time"),
                "zone": Given(about="The time zone (IANA) of the user, if not that of the device."),
            },
            says="{name} subscribes to {topic}",
        ),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/subscriptions",
        summary="List a device's subscriptions, and how many messages of each are unread or"
        " waiting",
        scope=Scope.DEVICES,
        handler=topics.list_subscriptions,
        answers={200: topics.SubscriptionList},
        refusals=(404,),
        command=Command(
            "device subscriptions",
            "phone",
            rows="subscriptions",
            columns="topic policy unread waiting xpath",
        ),
    ),
    Operation(
        method="PUT",
        path=f"{_DEVICE}/rules",
        summary="Set the rules by which a device's subscriptions follow its context",
        scope=Scope.DEVICES,
        handler=topics.set_rules,
        body=topics.Rules,
        answers={200: topics.Rules},
        refusals=(404, 415),
        command=Command(
            "device set-rules",
            "phone rules.json",
            file=True,
            says="the subscriptions of {name} follow the rules in {file}",
        ),
    ),
    Operation(
        method="GET",
        path=f"{_DEVICE}/rules",
        summary="Show the rules that a device's subscriptions follow",
        scope=Scope.DEVICES,
        handler=topics.get_rules,
        answers={200: topics.Rules},
        refusals=(404,),
        command=Command("device rules", "phone"),
    ),
    Operation(
        method="PUT",
        path="/v1/topics/{topic}",
        summary="Advertise that a topic will have messages",
        scope=Scope.PUBLISH,
        handler=topics.advertise,
        body=resources.Advertisement,
        optional=True,
        answers={200: topics.TopicInfo},
        refusals=(409,),
        command=Command(
            "topic advertise",
            'news.world --title "The world today"',
            says="{topic} is advertised; it has {subscribers} subscribers",
        ),
    ),
    Operation(
        method="DELETE",
        path="/v1/topics/{topic}",
        summary="Withdraw the advertisement of a topic, and notify its subscribers",
        scope=Scope.PUBLISH,
        handler=topics.withdraw,
        answers={200: topics.TopicWithdrawal},
        refusals=(404, 409),
        command=Command(
            "topic withdraw",
            "news.world",
            says="{topic} is withdrawn; {told} subscribers are notified",
        ),
    ),
    Operation(
        method="GET",
        path="/v1/topics",
        summary="List the topics that are advertised",
        scope=Scope.PUBLISH,
        handler=topics.list_topics,
        answers={200: topics.TopicList},
        command=Command(
            "topic list",
            rows="topics",
            columns="topic subscribers publisher=source title",
        ),
    ),
    Operation(
        method="DELETE",
        path=_SUBSCRIPTION,
        summary="End a device's subscription to a topic",
        scope=Scope.DEVICES,
        handler=devices.unsubscribe,
        answers={200: answers.Subscribed},
        refusals=(404,),
        command=Command(
            "device unsubscribe", "phone news", says="{name} does not subscribe to {topic}"
        ),
    ),
    Operation(
        method="PATCH",
        path="/v1/messages/{id}",
        summary="Change the rank of a message; devices that hold it reorder or drop it",
        scope=Scope.PUBLISH,
        handler=topics.change_rank,
        body=resources.RankChange,
        answers={200: topics.Reranked},
        refusals=(404, 415),
        command=Command(
            "topic rank",
            "0292c5a1f3c000000000000000000001 0.5",
            offline=False,
            says="{id} ranks {rank:g}; {open} deliveries are open",
        ),
    ),
)
