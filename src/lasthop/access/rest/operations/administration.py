"""What an app is set up with: behaviour, addresses, credentials, surrogates."""

from __future__ import annotations

from lasthop.access.rest import addresses, answers, behaviour, credentials, surrogates
from lasthop.access.rest.administration import AddressTarget, NewCredential
from lasthop.access.rest.operations.operation import Operation
from lasthop.access.rest.surrogate_manager import SurrogateInfo
from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.apps.credentials import Scope

_ADDRESS = "/v1/addresses/{address}"
_BEHAVIOUR = "/v1/apps/{app}/behaviour"

ADMINISTRATION: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path=_BEHAVIOUR,
        summary="How messages of the app behave",
        scope=Scope.DEVICES,
        handler=behaviour.show,
        answers={200: Behaviour},
        refusals=(404,),
    ),
    Operation(
        method="PUT",
        path=_BEHAVIOUR,
        summary="Say how messages of the app behave",
        scope=Scope.DEVICES,
        handler=behaviour.change,
        body=Behaviour,
        answers={200: Behaviour},
        refusals=(404, 415),
    ),
    Operation(
        method="DELETE",
        path=_BEHAVIOUR,
        summary="Take back what was set: the configuration holds again, or what holds for any app",
        scope=Scope.DEVICES,
        handler=behaviour.forget,
        answers={200: Behaviour},
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
