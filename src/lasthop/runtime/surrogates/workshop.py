"""All surrogates of a gateway: whom the gateway asks, and what administrators see and reload."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from lasthop.access.rest.overseer import SurrogateInfo
from lasthop.clock import Clock
from lasthop.core.effects import Consult
from lasthop.core.gateway import Gateway
from lasthop.core.surrogates.waiting import SurrogateQueue, SurrogateTerms
from lasthop.errors import Conflict, NotFound
from lasthop.runtime.engine import Engine
from lasthop.runtime.surrogates.duty import Employment
from lasthop.runtime.surrogates.foreman import Foreman

log = structlog.get_logger()


class Workshop:
    """The foremen of all apps that have a surrogate."""

    def __init__(self, employments: Mapping[str, Employment]) -> None:
        self._employments = employments
        self._foremen: dict[str, Foreman] = {}
        self._engine: Engine | None = None

    @property
    def terms(self) -> dict[str, SurrogateTerms]:
        """As the gateway takes them."""
        return {app: employment.terms for app, employment in self._employments.items()}

    def open(self, engine: Engine, clock: Clock) -> None:
        """Start the workers. What the gateway asks meanwhile waits for them."""
        self._engine = engine
        for app, employment in self._employments.items():
            self._foremen[app] = Foreman(employment.duty, engine, clock.now)
            self._foremen[app].start()

    async def close(self) -> None:
        """End all workers."""
        await asyncio.gather(*(foreman.stop() for foreman in self._foremen.values()))

    def consult(self, consult: Consult) -> None:
        """The gateway asks a surrogate."""
        self._foremen[consult.app].consult(consult)

    def status(self) -> list[SurrogateInfo]:
        """All surrogates as they are."""
        return [self.of(app) for app in sorted(self._foremen)]

    def of(self, app: str) -> SurrogateInfo:
        """One surrogate as it is."""
        foreman = self._foreman(app)
        engine = self._engine
        assert engine is not None
        post = engine.look(lambda gateway: _post(gateway, app))
        employment = self._employments[app]
        return SurrogateInfo(
            app=app,
            place=employment.duty.launch.place,
            state=foreman.state,
            reason=foreman.broken or "",
            pid=foreman.pid,
            waiting=post.waiting,
            queue=post.terms.queue,
            state_bytes=post.state_size,
            state_limit=post.terms.state,
            outcomes=dict(sorted(post.outcomes.items())),
            restarts=foreman.restarts,
            last_failure=foreman.last_failure,
        )

    async def reload(self, app: str) -> SurrogateInfo:
        """Load an app's surrogate anew; raises `Conflict` when it cannot be, and the old stays."""
        await self._foreman(app).reload()
        return self.of(app)

    async def reload_all(self) -> None:
        """Load every surrogate anew, as far as they can be."""
        for app in self._foremen:
            try:
                await self.reload(app)
            except Conflict as error:
                log.error("surrogate not reloaded", app=app, reason=error.detail)

    def _foreman(self, app: str) -> Foreman:
        foreman = self._foremen.get(app)
        if foreman is None:
            raise NotFound("this app has no surrogate", app=app)
        return foreman


def _post(gateway: Gateway, app: str) -> SurrogateQueue:
    post = gateway.surrogates.post(app)
    assert post is not None
    return post
