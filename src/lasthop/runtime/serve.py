"""The composition root: assembles a whole gateway in one place.

    sockets ─▶ front, interconnects ─▶ engine ─▶ writer ─▶ store
                                         │                   ▲
                                         ▼                   │
                                      gateway    export, housekeeping

The parts start from the store outwards, and stop in the opposite order: no request arrives before
everything that it needs has started, and no accepted request is dropped.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
import uvloop

from lasthop.access.callers import DEFAULT_APP
from lasthop.access.pap import PapDoor, PapSettings
from lasthop.access.pap.destinations import Destinations
from lasthop.access.rest import MESSAGES, Door, make_app
from lasthop.access.rest.app import make_token
from lasthop.clock import MINUTE
from lasthop.core.apps.behaviour import split_ways
from lasthop.core.apps.credentials import Scope
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.rights.people import SignedTokens
from lasthop.decision.volume.policy_choice import PolicyBook
from lasthop.delivery.http import HttpListener
from lasthop.delivery.listener import Listener
from lasthop.delivery.sms.sms_carrier import Heard
from lasthop.delivery.sms.sms_link import SmsReceipt
from lasthop.delivery.websocket import WebSocketListener
from lasthop.errors import LasthopError, StoreError
from lasthop.eventlog.exporter import Exporter, Rolling
from lasthop.eventlog.source import EventPages
from lasthop.extras import install_line
from lasthop.private import DIRECTORY, tighten
from lasthop.runtime import interconnects, logs
from lasthop.runtime.admission import Admission, descriptors_for_connections
from lasthop.runtime.air import on_air
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.dashboard.assembly import dashboard
from lasthop.runtime.echo import say
from lasthop.runtime.engine import Engine
from lasthop.runtime.event_listeners import EventListener, ListenedEvents
from lasthop.runtime.exporting import Export
from lasthop.runtime.failure import Failure
from lasthop.runtime.filtering.reader import FilterReader
from lasthop.runtime.front import Front
from lasthop.runtime.gauges import (
    show,
    show_certificates,
    show_connections,
    show_issuers,
    show_traces,
)
from lasthop.runtime.guard import Guard
from lasthop.runtime.history import tell_now
from lasthop.runtime.housekeeping import Housekeeping
from lasthop.runtime.learned import LearnedPolicies
from lasthop.runtime.metrics import Metrics
from lasthop.runtime.places import LOG_DIRECTORY, POLICY_DIRECTORY, Places
from lasthop.runtime.plugins import load_carriers, load_policies
from lasthop.runtime.policy_trials import PolicyTrials
from lasthop.runtime.proxies import TrustedProxies
from lasthop.runtime.randomness import Randomness
from lasthop.runtime.result_notifier import ResultNotifier
from lasthop.runtime.settings import Settings, listed
from lasthop.runtime.sms_sending import name_price
from lasthop.runtime.surrogates.workers import SurrogateWorkers
from lasthop.runtime.tls import Certificates
from lasthop.runtime.traces.tracer import Tracer
from lasthop.runtime.webserver import WebServer
from lasthop.store.base import Forgotten, Store
from lasthop.store.commit import Restored
from lasthop.store.sqlite import SqliteStore
from lasthop.store.writer import CommitWriter

if TYPE_CHECKING:
    from lasthop.runtime.issuers.signing_in import SignIn

log = structlog.get_logger()

ROLLING = Rolling(age=5 * MINUTE)
"""When a new segment of the event log is started: a busy day has 288 segments. `lasthop log tail`
does not wait for complete segments, and a program that needs them sooner announces itself."""

FIRST_KEYS = 2.0
"""Seconds that a start waits for the keys of issuers, so that the first requests need not be sent
again."""

YOUNG_OBJECTS = 10_000
"""The number of new objects after which a garbage collection starts; it then takes 3 ms. With
Python's 700 the collector takes a twelfth of a busy gateway's time, and up to 40 ms at once."""

SWITCH_INTERVAL = 0.0005
"""Seconds after which a waiting thread may ask the running one for the interpreter. The writer
needs it only briefly, to report a durable commit and to take the next one; with Python's 5 ms a
busy event loop would delay everybody who waits for that commit."""


def run(settings: Settings, *, announce: Callable[[Places], None]) -> None:
    """Run a gateway in an event loop of its own until it is told to stop."""
    logs.configure(settings.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings, announce=announce))


async def serve(settings: Settings, *, announce: Callable[[Places], None]) -> None:
    """Run a gateway until a signal or a broken store ends it.

    The first signal ends it gracefully, a second one at once: what was accepted is safe either way.
    """
    stop = asyncio.Event()
    broken: list[StoreError] = []

    def failed(error: StoreError) -> None:
        broken.append(error)
        stop.set()

    def signalled() -> None:
        if stop.is_set():
            print("lasthop: aborted", file=sys.stderr)
            os._exit(1)
        stop.set()
        log.info("shutting down; repeat the signal to abort")

    surrogate_workers = SurrogateWorkers(settings.employments())
    certificates = Certificates.of(settings.tls)
    reloads: set[asyncio.Task[None]] = set()

    def in_background(work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    def reload() -> None:
        in_background(surrogate_workers.reload_all())
        if certificates is not None:
            in_background(certificates.reload())

    async with running(settings, failed, surrogate_workers, certificates) as places:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, reload)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, signalled)
        _calm_collector()
        announce(places)
        await stop.wait()
    if broken:
        raise Failure(f"the store failed: {broken[0]}")
    log.info("stopped")


def _calm_collector() -> None:
    """Collect garbage rarely: almost no objects are in cycles, and looking for cycles means walking
    all open deliveries while everybody waits."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


@asynccontextmanager
async def running(
    settings: Settings,
    failed: Callable[[StoreError], None],
    surrogate_workers: SurrogateWorkers | None = None,
    certificates: Certificates | None = None,
) -> AsyncIterator[Places]:
    """Run a gateway for as long as this context lasts; yield its addresses."""
    load_policies(settings.plugins.policies)
    others = load_carriers(settings.plugins.carriers)
    name_price(settings.smsc)
    surrogate_workers = surrogate_workers or SurrogateWorkers(settings.employments())
    log_directory = Path(settings.data) / LOG_DIRECTORY
    clock = SystemClock()
    certificates = certificates or Certificates.of(settings.tls)
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        store = _open_store(settings)
        stack.callback(store.close)
        sockets = interconnects.bind(settings, stack)

        restored = store.open()
        learned = LearnedPolicies(Path(settings.data) / POLICY_DIRECTORY, settings.topics.choice())
        learned.poll()
        tokens, sign_in = await _issuers(settings, clock, metrics, stack)
        gateway = _gateway(settings, restored, clock, learned, surrogate_workers, tokens)
        gateway.contacts.tell_of_networks(learned.heartbeat)
        _offer_first_credential(settings, gateway, clock)
        initiators = settings.initiators()
        destinations = Destinations(
            hosts=initiators.notify_hosts, private=initiators.notify_private
        )
        engine: Engine

        def reachable(host: str) -> None:
            engine.reachable(host)

        def receipted(receipt: SmsReceipt, heard: Heard) -> None:
            engine.receipted(receipt, heard)

        air = await stack.enter_async_context(
            on_air(
                settings,
                clock,
                boot=restored.boot,
                reachable=reachable,
                receipts=receipted,
                others=others,
            )
        )
        writer = CommitWriter(store, next_commit=restored.next_commit)
        stack.push_async_callback(asyncio.to_thread, writer.close)
        filter_reader = FilterReader()
        engine = Engine(
            gateway,
            writer=writer,
            reader=store.reader(),
            clock=clock,
            failed=failed,
            observer=metrics,
            carriers=air,
            tell=ResultNotifier(destinations),
            consult=surrogate_workers.consult,
            match=filter_reader.match,
        )
        stack.push_async_callback(engine.close)
        stack.push_async_callback(surrogate_workers.close)
        surrogate_workers.open(engine, clock)
        stack.push_async_callback(filter_reader.close)
        filter_reader.open(engine)
        pages = stack.enter_context(closing(store.reader()))
        event_listeners: list[EventListener] = [say] if settings.log_level == "debug" else []
        tracer = _tracer(settings, pages, metrics, stack)
        if tracer is not None:
            event_listeners.append(tracer.note)
        exported = ListenedEvents(pages, event_listeners) if event_listeners else pages
        export = Export(
            _exporter(log_directory, exported, writer), SystemClock(), log=log_directory
        )
        stack.push_async_callback(asyncio.to_thread, export.close)
        stack.push_async_callback(engine.stop)
        housekeeping = Housekeeping(
            writer, settings.retention, clock=clock, log_directory=log_directory
        )
        await stack.enter_async_context(_background(housekeeping.run()))
        await engine.call(lambda gateway, now: gateway.ranked.policies_changed(now, learned.news()))
        await stack.enter_async_context(
            _background(
                learned.follow(
                    lambda: engine.call(
                        lambda g, now: g.ranked.policies_changed(now, learned.news())
                    )
                )
            )
        )
        trials = PolicyTrials(learned, engine, settings.topics)
        await stack.enter_async_context(_background(trials.run()))

        if certificates is not None:
            show_certificates(metrics, certificates)
            await stack.enter_async_context(_background(certificates.follow()))
        tls = certificates.hop if certificates is not None else None
        listeners = await interconnects.serve(sockets, engine, clock, tls, stack)
        if settings.ways.moved:
            stack.callback(engine.send_away, settings.ways.moved)

        door = _door(settings, engine, writer, log_directory, surrogate_workers, trials)
        engine.listeners = door.hub.appeared
        pap_door = _pap_door(engine, initiators, door, destinations)
        by_websocket = WebSocketListener(engine, clock=clock)
        by_requests = HttpListener(
            engine,
            clock=clock,
            path=settings.http.requests,
            hold=settings.http.hold,
            max_frame=settings.limits.core(settings.ota).max_frame,
        )
        pages_for_people, live = dashboard(settings, door, engine, metrics, learned, sign_in)
        front = Front(
            door,
            pages=pages_for_people,
            websocket=(settings.http.websocket, by_websocket),
            requests=(settings.http.requests, by_requests),
            pap=(settings.pap.path, pap_door),
            metrics=metrics,
            ready=lambda: engine.ready,
        )
        guard = _guard(settings, door, tuple(listeners.values()))
        listeners |= {"websocket": by_websocket, "http": by_requests}
        show(metrics, engine, door, pap_door, listeners)
        show_connections(metrics, guard)
        direct = {MESSAGES: door.take, settings.pap.path: pap_door.take}
        web = WebServer(
            front, sockets.http, settings, direct=direct, guard=guard, certificates=certificates
        )
        stack.push_async_callback(web.stop)
        stack.push_async_callback(by_websocket.stop)
        stack.push_async_callback(by_requests.stop)
        await web.start()
        stack.push_async_callback(live.close)
        stack.push_async_callback(door.hub.close)
        stack.callback(engine.drain)

        places = interconnects.places(settings, sockets, first_start=restored.boot == 1)
        places.write()
        stack.callback(places.remove)
        yield places


def _gateway(
    settings: Settings,
    restored: Restored,
    clock: SystemClock,
    policies: PolicyBook,
    surrogate_workers: SurrogateWorkers,
    tokens: SignedTokens | None,
) -> Gateway:
    identity = Identity(
        name=settings.name,
        open_house=settings.open_house,
        variants=settings.variants,
        limits=settings.limits.core(settings.ota, settings.topics),
        ppg_names=frozenset(listed(settings.pap.gateways)),
        default_routes=tuple(route.route(name) for name, route in settings.default_routes.items()),
        patience=settings.pap.patience(),
        shared=settings.limits.shared.limits,
        zone=settings.limits.zone,
        policies=policies,
        behaviours=settings.configured(),
        ways=split_ways(settings.ways.offered),
        surrogates=surrogate_workers.terms,
        rules=settings.configured_rules(),
        least=settings.least,
        tokens=tokens,
        device_messages=settings.device_messages,
    )
    gateway = Gateway(identity, restored, random64=Randomness(), now=clock.now())
    for app in gateway.deliveries.behaviours.overridden:
        log.warning(
            "the set behaviour differs from the settings; reset it by: lasthop behaviour clear",
            app=app,
        )
    return gateway


async def _issuers(
    settings: Settings, clock: SystemClock, metrics: Metrics, stack: AsyncExitStack
) -> tuple[SignedTokens | None, SignIn | None]:
    """Return what checks the tokens of issuers, whose keys are fetched from now on, and signs
    people in; None if there are no issuers. A gateway starts without issuers that cannot be
    reached."""
    if not settings.issuers:
        return None, None
    try:
        # In an extra of its own.
        from lasthop.runtime.issuers.fetching import KeyFetcher, TrustedIssuers  # noqa: PLC0415
        from lasthop.runtime.issuers.signing_in import SignIn  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Failure(f"issuers need {error.name}: {install_line(error)}") from None
    trusted = TrustedIssuers(settings.issuers)
    fetchers = [KeyFetcher(issuer, clock) for issuer in trusted.issuers]
    for fetcher in fetchers:
        await stack.enter_async_context(_background(fetcher.follow()))
    with suppress(TimeoutError):
        async with asyncio.timeout(FIRST_KEYS):
            await asyncio.gather(*(fetcher.tried() for fetcher in fetchers))
    show_issuers(metrics, trusted.issuers)
    return trusted, SignIn({fetcher.issuer.settings.name: fetcher for fetcher in fetchers})


def _offer_first_credential(settings: Settings, gateway: Gateway, clock: SystemClock) -> None:
    """Print a code with which the first administrator's credential can be made over REST, if
    credentials are asked for and nobody has one."""
    now = clock.now()
    if settings.open_house or gateway.credentials.administered(now):
        return
    code = make_token()
    gateway.credentials.offer_first(code, DEFAULT_APP, now)
    log.warning(
        "nobody can administer this gateway; for an hour, the first credential can be made with:"
        " lasthop credential add NAME --scope admin --token CODE",
        code=code,
    )


def _exporter(log_directory: Path, pages: EventPages, writer: CommitWriter) -> Exporter:
    return Exporter(
        log_directory,
        pages,
        confirm=lambda until: writer.call(lambda store: store.exported(until)).result(),
        rolling=ROLLING,
    )


def _tracer(
    settings: Settings, pages: EventPages, metrics: Metrics, stack: AsyncExitStack
) -> Tracer | None:
    if not settings.traces.endpoint:
        return None
    tracer = Tracer(settings.traces, gateway=settings.name, event_at=pages.event_at)
    # Close it after the export has ended, which may still pass events to it.
    stack.push_async_callback(asyncio.to_thread, tracer.close)
    show_traces(metrics, tracer)
    return tracer


def _door(
    settings: Settings,
    engine: Engine,
    writer: CommitWriter,
    log_directory: Path,
    surrogate_workers: SurrogateWorkers,
    trials: PolicyTrials,
) -> Door:
    return make_app(
        engine,
        settings.rest(),
        explain=partial(tell_now, engine, log_directory),
        erase=lambda device: _erase(writer, device),
        surrogate_manager=surrogate_workers,
        policy_manager=trials,
        receiving=settings.receiving(),
    )


def _pap_door(
    engine: Engine, settings: PapSettings, door: Door, destinations: Destinations
) -> PapDoor:
    """Make the PAP door, which shares authentication and quotas with the REST door."""
    context = door.context
    return PapDoor(
        engine,
        settings,
        callers=context.callers,
        intake=context.intake,
        charge=context.charge,
        destinations=destinations,
    )


def _guard(settings: Settings, door: Door, others: Sequence[Listener]) -> Guard:
    """Make the guard of the HTTP port; devices connected by `others` count against the limit of
    open files too."""
    descriptors = descriptors_for_connections()
    callers = door.context.callers

    def most() -> int:
        elsewhere = sum(listener.connections for listener in others)
        return min(settings.http.connections, descriptors - elsewhere)

    def administers(
        headers: Mapping[bytes, bytes], peer: str | None, certificate: str | None
    ) -> bool:
        try:
            return Scope.ADMIN in callers.recognise(headers, peer, certificate).scopes
        except LasthopError:
            return False

    proxies = TrustedProxies(settings.http.trusted_proxies)
    per_address = settings.http.connections_per_address
    admission = Admission(most=most, per_address=per_address, proxies=proxies)
    return Guard(admission, administers, refused=door.refused, proxies=proxies)


def _open_store(settings: Settings) -> SqliteStore:
    data = Path(settings.data)
    store = SqliteStore(data, durability=settings.durability)
    # Earlier versions made these directories readable for others.
    for name in (LOG_DIRECTORY, POLICY_DIRECTORY):
        tighten(data / name, DIRECTORY)
    return store


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run a coroutine beside everything else, and cancel it at the end of the context."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _erase(writer: CommitWriter, device: int) -> None:
    """Erase a removed device from the store, in steps between which commits go on."""
    start: int | None = 0
    while start is not None:
        step = writer.call(partial(_erase_step, device, start))
        start = (await asyncio.wrap_future(step)).next


def _erase_step(device: int, start: int, store: Store) -> Forgotten:
    return store.erase_device(device, start=start)
