"""Operations that set up an app: its behaviour, client addresses, credentials and surrogate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lasthop.access.rest.operations.command import Command, Given, Row
from lasthop.access.rest.operations.deferred import Deferred, deferred
from lasthop.access.rest.operations.operation import Operation, Scope

if TYPE_CHECKING:
    from lasthop.access.rest import (
        addresses,
        administration,
        answers,
        behaviour,
        credentials,
        surrogate_manager,
        surrogates,
    )
    from lasthop.core.apps.behaviour import Behaviour
else:
    addresses, administration, answers = deferred("addresses", "administration", "answers")
    behaviour, credentials = deferred("behaviour", "credentials")
    surrogate_manager, surrogates = deferred("surrogate_manager", "surrogates")
    Behaviour = Deferred("lasthop.core.apps.behaviour", "Behaviour")

_ADDRESS = "/v1/addresses/{address}"
_BEHAVIOUR = "/v1/apps/{app}/behaviour"
_SURROGATE = "/v1/surrogates/{app}"

_AS_FOR_ANY = "as for any app"
_TYPE_VALUE = Given(form="TYPE:VALUE")


def _credential(made: Row) -> str:
    """Return what the holder of a new credential needs: its token, or its certificate."""
    if made.get("certificate"):
        return f"{made['name']} is the holder of the certificate {made['certificate']}"
    return str(made["token"])


def _surrogate(found: Row) -> str:
    """Format the state of a surrogate for people, in aligned lines."""
    facts = {name.replace("_", " "): found[name] for name in found["answered"]}
    facts |= facts.pop("outcomes")
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in facts.items())


def _broken(found: Row) -> str:
    if found["state"] != "broken":
        return ""
    return f"the surrogate of {found['app']} cannot be loaded: {found['reason']}"


ADMINISTRATION: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path=_BEHAVIOUR,
        summary="Show how messages of the app behave",
        scope=Scope.DEVICES,
        handler=behaviour.show,
        answers={200: Behaviour},
        refusals=(404,),
        command=Command("behaviour show", offline=False, nothing=_AS_FOR_ANY),
    ),
    Operation(
        method="PUT",
        path=_BEHAVIOUR,
        summary="Set how messages of the app behave from now on, in place of earlier settings",
        scope=Scope.DEVICES,
        handler=behaviour.change,
        body=Behaviour,
        answers={200: Behaviour},
        refusals=(404, 415),
        command=Command(
            "behaviour set",
            "--max-size 8MiB --type 'image/*' --handling background\n--pull-on mno --fixed pull",
            given={
                "content_types": Given(flag="--type"),
                "max_size": Given(size=True, about="The largest body of a message: 64KiB, 8MiB."),
            },
            offline=False,
            nothing=_AS_FOR_ANY,
        ),
    ),
    Operation(
        method="DELETE",
        path=_BEHAVIOUR,
        summary="Remove the app's settings: the configuration applies again, or the defaults of"
        " any app",
        scope=Scope.DEVICES,
        handler=behaviour.forget,
        answers={200: Behaviour},
        refusals=(404,),
        command=Command("behaviour clear", offline=False, nothing=_AS_FOR_ANY),
    ),
    Operation(
        method="PUT",
        path=_ADDRESS,
        summary="Let a client address of PAP stand for a user, a topic, a device or everyone",
        scope=Scope.DEVICES,
        handler=addresses.point,
        body=administration.AddressTarget,
        answers={200: answers.AddressInfo},
        refusals=(415,),
        command=Command(
            "address set",
            "USER:staff topic:staff\nUSER:alice@example.org user:alice",
            given={"address": _TYPE_VALUE},
            says="{address} stands for {target}",
        ),
    ),
    Operation(
        method="GET",
        path="/v1/addresses",
        summary="List the app's client addresses that stand for users, topics and devices",
        scope=Scope.DEVICES,
        handler=addresses.list_addresses,
        answers={200: answers.AddressList},
        command=Command(
            "address list",
            rows="addresses",
            columns="address target",
            each=True,
        ),
    ),
    Operation(
        method="DELETE",
        path=_ADDRESS,
        summary="Remove a client address, so that it stands for nobody",
        scope=Scope.DEVICES,
        handler=addresses.remove,
        answers={200: answers.AddressInfo},
        refusals=(404,),
        command=Command(
            "address remove",
            "USER:staff",
            given={"address": _TYPE_VALUE},
            says="removed {address}",
            result=lambda removed: {"removed": removed["address"]},
        ),
    ),
    Operation(
        method="POST",
        path="/v1/credentials",
        summary="Create a credential; its token is shown once and not stored",
        scope=Scope.ADMIN,
        handler=credentials.admit,
        body=administration.NewCredential,
        answers={201: answers.CredentialInfo},
        refusals=(415,),
        command=Command(
            "credential add",
            "shop --scope publish\nroot --scope admin --data ./data\n"
            'shop --certificate "CN=shop,O=Example"',
            given={
                "scopes": Given(flag="--scope", default=["publish"]),
                "certificate": Given(form="SUBJECT"),
            },
            fixed={"app": None},
            says=_credential,
        ),
    ),
    Operation(
        method="GET",
        path="/v1/credentials",
        summary="List the credentials of the app",
        scope=Scope.ADMIN,
        handler=credentials.list_credentials,
        answers={200: answers.CredentialList},
        command=Command(
            "credential list",
            "--json",
            rows="credentials",
            columns="name scopes created=created_at used=used_at expires=expires_at revoked",
            derived={"revoked": lambda row: "revoked" if row.get("revoked") else ""},
            each=True,
        ),
    ),
    Operation(
        method="POST",
        path="/v1/credentials/{name}/rotate",
        summary="Give a credential a new token; the earlier one is accepted for a while",
        scope=Scope.ADMIN,
        handler=credentials.rotate,
        body=administration.CredentialRotation,
        optional=True,
        answers={200: answers.CredentialInfo},
        refusals=(404, 415),
        command=Command("credential rotate", "shop\nshop --overlap 3600", says="{token}"),
    ),
    Operation(
        method="DELETE",
        path="/v1/credentials/{name}",
        summary="Revoke all credentials of a name",
        scope=Scope.ADMIN,
        handler=credentials.dismiss,
        answers={200: answers.Revoked},
        refusals=(404,),
        command=Command("credential revoke", "shop", says="revoked {revoked}"),
    ),
    Operation(
        method="GET",
        path="/v1/surrogates",
        summary="List the surrogates of all apps",
        scope=Scope.ADMIN,
        handler=surrogates.list_surrogates,
        answers={200: surrogates.SurrogateList},
        command=Command(
            "surrogate list",
            app=False,
            offline=False,
            rows="surrogates",
            columns="app class=place state waiting",
        ),
    ),
    Operation(
        method="GET",
        path=_SURROGATE,
        summary="Show the state of an app's surrogate",
        scope=Scope.ADMIN,
        handler=surrogates.show_surrogate,
        answers={200: surrogate_manager.SurrogateInfo},
        refusals=(404,),
        command=Command(
            "surrogate status",
            "shop",
            more="The exit code is 1 when the surrogate cannot be loaded.",
            app=False,
            offline=False,
            says=_surrogate,
            fails=_broken,
        ),
    ),
    Operation(
        method="POST",
        path=f"{_SURROGATE}/reload",
        summary="Reload an app's surrogate; the old one stays when that fails",
        scope=Scope.ADMIN,
        handler=surrogates.reload_surrogate,
        answers={200: surrogate_manager.SurrogateInfo},
        refusals=(404, 409),
        command=Command(
            "surrogate reload",
            "shop",
            more="New code takes over between two messages.",
            app=False,
            offline=False,
            says="the surrogate of {app} was reloaded from {place}",
        ),
    ),
)
