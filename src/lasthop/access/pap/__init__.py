"""The PAP door: `POST /pap`, for push initiators that speak the Push Access Protocol."""

from lasthop.access.pap.door import PapDoor
from lasthop.access.pap.settings import PapSettings

__all__ = ["PapDoor", "PapSettings"]
