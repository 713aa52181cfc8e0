"""The table of all operations of the REST door, put together from one module for each subject."""

from __future__ import annotations

from lasthop.access.rest.operations.administration import ADMINISTRATION
from lasthop.access.rest.operations.devices import DEVICES
from lasthop.access.rest.operations.groups import GROUPS
from lasthop.access.rest.operations.messages import EXPLAIN, MESSAGES
from lasthop.access.rest.operations.operation import Ask, Operation
from lasthop.access.rest.operations.policies_on_trial import POLICY
from lasthop.access.rest.operations.remembering import HISTORY
from lasthop.access.rest.operations.rights import RIGHTS
from lasthop.access.rest.operations.services import SERVICES
from lasthop.access.rest.operations.streams import STREAMS
from lasthop.access.rest.operations.topics import TOPICS

__all__ = ["EXPLAIN", "OPERATIONS", "Ask", "Operation"]

OPERATIONS: tuple[Operation, ...] = (
    *MESSAGES,
    *SERVICES,
    *STREAMS,
    *DEVICES,
    *TOPICS,
    *HISTORY,
    *GROUPS,
    *ADMINISTRATION,
    *RIGHTS,
    *POLICY,
)
"""The operations that every gateway has, whatever features it runs with."""
