"""What devices do for others, asked over REST."""

from __future__ import annotations

from lasthop.access.rest import services
from lasthop.access.rest.operations.operation import Operation
from lasthop.core.apps.credentials import Scope

SERVICES: tuple[Operation, ...] = (
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
)
