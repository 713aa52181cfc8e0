"""Assembles the dashboard from the parts of a running gateway."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop.access.rest import Door
from lasthop.access.rest.app import make_token
from lasthop.core.lifecycle import State
from lasthop.policy.store import PolicyStore
from lasthop.runtime.dashboard.live import GatewayTotals, Live
from lasthop.runtime.dashboard.pages import Pages
from lasthop.runtime.dashboard.sessions import Sessions
from lasthop.runtime.dashboard.sign_in import SignInPages
from lasthop.runtime.dashboard.views import Views
from lasthop.runtime.engine import Engine
from lasthop.runtime.learned import LearnedPolicies
from lasthop.runtime.metrics import Metrics
from lasthop.runtime.places import LAKE_DIRECTORY, POLICY_DIRECTORY
from lasthop.runtime.settings import Settings

if TYPE_CHECKING:
    from lasthop.runtime.issuers.signing_in import SignIn


def dashboard(
    settings: Settings,
    door: Door,
    engine: Engine,
    metrics: Metrics,
    policies: LearnedPolicies,
    sign_in: SignIn | None,
) -> tuple[Pages, Live]:
    """Return the dashboard's pages, to be served beside the REST door, and the live samples that
    they show."""
    live = Live(partial(_totals, metrics, engine), engine.now)
    metrics.also = live.committed
    data = Path(settings.data)
    sessions = Sessions(make_token)
    pages = Pages(
        door,
        live=live,
        views=Views(engine),
        sessions=sessions,
        sign_in=SignInPages(door, sessions, sign_in),
        policy_store=PolicyStore(data / POLICY_DIRECTORY),
        in_force=lambda: policies.index.version,
        lake=data / LAKE_DIRECTORY,
        websocket=settings.http.websocket,
    )
    return pages, live


def _totals(metrics: Metrics, engine: Engine) -> GatewayTotals:
    tally = metrics.tally
    return GatewayTotals(
        accepted=tally["accepted"],
        ended={name: tally[name] for name in _FINAL},
        commits=tally["commits"],
        commit_seconds=metrics.commit_seconds,
        connections=engine.connections,
        devices=len(engine.gateway.registry),
        messages=len(engine.gateway.deliveries.items),
    )


_FINAL = [state.name.lower() for state in State if state.final]
