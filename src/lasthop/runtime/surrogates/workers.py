"""All surrogates of a gateway: passes the gateway's questions to them, and lets administrators see
and reload them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from lasthop.access.rest.surrogate_manager import SurrogateInfo
from lasthop.clock import Clock
from lasthop.core.effects import Consult
from lasthop.core.gateway import Gateway
from lasthop.core.surrogates.waiting import SurrogateQueue, SurrogateTerms
from lasthop.errors import Conflict, NotFound
from lasthop.runtime.engine import Engine
from lasthop.runtime.surrogates.duty import Employment
from lasthop.runtime.surrogates.supervisor import WorkerSupervisor

log = structlog.get_logger()


class SurrogateWorkers:
    """The supervisors of all apps that have a surrogate."""

    def __init__(self, employments: Mapping[str, Employment]) -> None:
        self._employments = employments
        self._supervisors: dict[str, WorkerSupervisor] = {}
        self._engine: Engine | None = None

    @property
    def terms(self) -> dict[str, SurrogateTerms]:
        """The terms of all surrogates, by app, for the gateway."""
        return {app: employment.terms for app, employment in self._employments.items()}

    def open(self, engine: Engine, clock: Clock) -> None:
        """Start the workers. Questions of the gateway wait until the workers have started."""
        self._engine = engine
        for app, employment in self._employments.items():
            self._supervisors[app] = WorkerSupervisor(employment.duty, engine, clock.now)
            self._supervisors[app].start()

    async def close(self) -> None:
        """End the workers of all apps."""
        await asyncio.gather(*(supervisor.stop() for supervisor in self._supervisors.values()))

    def consult(self, consult: Consult) -> None:
        """Pass a question of the gateway to the app's surrogate."""
        self._supervisors[consult.app].consult(consult)

    def status(self) -> list[SurrogateInfo]:
        """Return the state of every surrogate."""
        return [self.of(app) for app in sorted(self._supervisors)]

    def of(self, app: str) -> SurrogateInfo:
        """Return the state of an app's surrogate; raise `NotFound` if the app has none."""
        supervisor = self._supervisor(app)
        engine = self._engine
        assert engine is not None
        post = engine.look(lambda gateway: _post(gateway, app))
        employment = self._employments[app]
        return SurrogateInfo(
            app=app,
            place=employment.duty.launch.place,
            state=supervisor.state,
            reason=supervisor.broken or "",
            pid=supervisor.pid,
            waiting=post.waiting,
            queue=post.terms.queue,
            state_bytes=post.state_size,
            state_limit=post.terms.state,
            outcomes=dict(sorted(post.outcomes.items())),
            restarts=supervisor.restarts,
            last_failure=supervisor.last_failure,
        )

    async def reload(self, app: str) -> SurrogateInfo:
        """Load an app's surrogate again; raise `Conflict` if it cannot be loaded, and keep the old
        one."""
        await self._supervisor(app).reload()
        return self.of(app)

    async def reload_all(self) -> None:
        """Load every surrogate again; one that cannot be loaded is logged, and the old one
        stays."""
        for app in self._supervisors:
            try:
                await self.reload(app)
            except Conflict as error:
                log.error("surrogate not reloaded", app=app, reason=error.detail)

    def _supervisor(self, app: str) -> WorkerSupervisor:
        supervisor = self._supervisors.get(app)
        if supervisor is None:
            raise NotFound("this app has no surrogate", app=app)
        return supervisor


def _post(gateway: Gateway, app: str) -> SurrogateQueue:
    post = gateway.surrogates.post(app)
    assert post is not None
    return post
