"""The REST door: publish, follow, cancel and answer messages; administer devices and credentials.

`requests` holds what may be asked and turns it into submissions, `administration` and `resources`
what administrators may ask for, `answers` what is said back. `operations` lists every operation
once: routing, the OpenAPI document and the administrative commands are all made from it.
Publishing, by `publish` and in the one-line form (`access.ntfy`), is bare ASGI, and does without
even that where a request is small; everything else goes through Starlette's router.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lasthop.access.rest.app import MESSAGES, Door, make_app
    from lasthop.access.rest.settings import RestSettings

__all__ = ["MESSAGES", "Door", "RestSettings", "make_app"]


def __getattr__(name: str) -> object:
    # The command line reads `operations`, and must not wait for a whole gateway to be imported.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "settings" if name == "RestSettings" else "app"
    return getattr(import_module(f"{__name__}.{place}"), name)
