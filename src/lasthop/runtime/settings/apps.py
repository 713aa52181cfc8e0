"""The settings of each app: the behaviour of its messages, and the surrogate that acts for its
devices.

These parts have a section for every app, such as `[behaviours.shop]`, and no variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lasthop.clock import SECOND
from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.surrogates.waiting import Failing, SurrogateTerms
from lasthop.runtime.settings.short_messages import DefaultRouteSettings, SmscSettings
from lasthop.runtime.surrogates.duty import Duty, Employment, Launch
from lasthop.runtime.units import Duration, Size


class AppBehaviour(Behaviour, frozen=True, kw_only=True):
    """How messages of the app APP behave; one such section for every app. A behaviour set by
    `lasthop behaviour set` replaces the whole section until `lasthop behaviour clear`."""

    max_size: Annotated[
        Size | None,
        Meta(
            description="The largest body, at most limits.largest_body; without it limits.body.",
            examples=["8MiB"],
        ),
    ] = None

    def behaviour(self) -> Behaviour:
        """Return the behaviour in the form that the gateway uses."""
        plain = msgspec.structs.asdict(self)
        return Behaviour(
            **plain | {"max_size": None if self.max_size is None else int(self.max_size)}
        )


_surrogate = SurrogateTerms()

MAX_STATE = 16 << 20
"""The largest state of a surrogate, in bytes: a worker is given all of it at once, and it is in
memory twice."""


class SurrogateSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A class that acts for the devices of the app APP; one such section for every app that has a
    surrogate."""

    place: Annotated[
        str,
        Meta(
            description="Where the class is: package.module:Class.",
            pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
            examples=["package.module:Class"],
        ),
    ] = msgspec.field(name="class")
    path: Annotated[str, Meta(description="Directory in which the module is looked for first.")] = (
        ""
    )
    time: Annotated[
        Duration, Meta(description="Time limit for one message; then the worker is replaced.")
    ] = Duration(5 * SECOND)
    memory: Annotated[Size, Meta(description="Address space of the worker.")] = Size(1 << 30)
    state: Annotated[Size, Meta(description="Size of the surrogate's state, at most 16MiB.")] = (
        Size(_surrogate.state)
    )
    queue: Annotated[
        int, Meta(description="Messages that may wait for the surrogate; more are refused.", ge=1)
    ] = _surrogate.queue
    attempts: Annotated[
        int,
        Meta(
            description="Attempts at one message before it is handled as `failing` says.",
            ge=1,
            le=10,
        ),
    ] = _surrogate.attempts
    failing: Annotated[
        Literal["relay", "refuse"],
        Meta(
            description='What becomes of a message if the surrogate fails: "relay" delivers it'
            ' unchanged, "refuse" stops it.'
        ),
    ] = _surrogate.failing.value

    def employment(self, app: str) -> Employment:
        """Return the surrogate's terms for the gateway, and its duty for the supervisor."""
        return Employment(
            SurrogateTerms(
                attempts=self.attempts,
                failing=Failing(self.failing),
                queue=self.queue,
                state=int(self.state),
            ),
            Duty(
                Launch(app, self.place, int(self.memory), self.path),
                self.time.seconds,
                int(self.state),
            ),
        )


NAMED: Mapping[str, type[msgspec.Struct]] = {
    "behaviours": AppBehaviour,
    "surrogates": SurrogateSettings,
    "smsc": SmscSettings,
    "default_routes": DefaultRouteSettings,
}
"""The parts of the settings that have any number of sections, each with a name: that of an app, of
an SMSC, or of a kind of addresses."""

PLACEHOLDERS = {"behaviours": "APP", "surrogates": "APP", "smsc": "NAME", "default_routes": "NAME"}
"""What stands for the name of a section in documents."""
