"""Carries out the requests of push initiators: one method for each request message of PAP."""

from __future__ import annotations

from lasthop.access.callers import Caller
from lasthop.access.live_gateway import LiveGateway
from lasthop.access.pap.arrivals import Done, PushArrivals
from lasthop.access.pap.destinations import Destinations
from lasthop.access.pap.lookups import Lookups
from lasthop.access.pap.pushing import MAX_HEADERS, submission_of
from lasthop.access.pap.settings import PapSettings
from lasthop.clock import Micros
from lasthop.core.gateway import Gateway
from lasthop.core.pushes.feature import Order
from lasthop.core.pushes.push_ids import identify
from lasthop.core.pushes.report import reports_of
from lasthop.errors import NotFound, Rejected
from lasthop.store.pushes import KnownPush
from lasthop.wire import tracecontext
from lasthop.wire.pap.addresses import recognise
from lasthop.wire.pap.codes import CODES, MessageState
from lasthop.wire.pap.documents import (
    CancelMessage,
    CancelResponse,
    CancelResult,
    CcqMessage,
    CcqResponse,
    Document,
    PapMessage,
    ProgressNote,
    PushMessage,
    PushResponse,
    ResponseResult,
    StatusQueryMessage,
    StatusQueryResponse,
    StatusQueryResult,
)
from lasthop.wire.pap.multipart import Entity
from lasthop.wire.pap.outcomes import PushReport, cancel_code, cancel_results, status_results
from lasthop.wire.pap.receipts import ACCEPTED, write_receipt
from lasthop.wire.pap.submission import PapSubmission
from lasthop.wire.pap.uaprof import CONTENT_TYPE, read_profile, write_profile
from lasthop.wire.pap.versions import SUPPORTED, Version
from lasthop.wire.pap.writer import write_document
from lasthop.wire.tracecontext import Headers

PRODUCT = "lasthop"


class NoCapabilities(NotFound):
    """The gateway knows no capabilities of the client that a query is about."""

    code = "no_capabilities"
    pap_code = 3008


class NotARequest(Rejected):
    """A PAP message that is not a request to a gateway, such as a response."""

    code = "not_a_request"


class Operations:
    """Carries out PAP requests; each is answered when its changes are durable."""

    def __init__(
        self, live: LiveGateway, settings: PapSettings, destinations: Destinations
    ) -> None:
        self._live = live
        self._settings = settings
        self._destinations = destinations
        self._lookups = Lookups(live)
        self._arrivals = PushArrivals(live, self._lookups)

    async def answer(self, caller: Caller, message: PapMessage) -> tuple[PapMessage, Entity | None]:
        """Return the answer to a request other than a push, and the entity that accompanies it, if
        any."""
        match message:
            case CancelMessage():
                return await self.cancel(caller, message), None
            case StatusQueryMessage():
                return await self.status(caller, message), None
            case CcqMessage():
                return self.capabilities(caller, message)
            case _:
                raise NotARequest("this PAP message is not a request to a gateway")

    def push(
        self,
        caller: Caller,
        push: PushMessage,
        given: PapSubmission,
        received_at: Micros,
        *,
        context: Headers,
        done: Done,
    ) -> None:
        """Accept a push, with the trace headers of the request as `context`; `done` is called when
        the push is durable, or with the reason why it is refused."""
        if push.notify_to:
            self._destinations.check(push.notify_to)
        assert given.content is not None
        submission = submission_of(
            push, given.content, received_at, response_wait=self._settings.response_wait
        )
        full = len(submission.headers) >= MAX_HEADERS
        if context and not full and not tracecontext.of_message(submission.headers):
            submission.headers += context
        replacing = push.replace_push_id
        order = Order(
            push_id=push.push_id,
            addresses=push.addresses,
            submission=submission,
            notify_to=push.notify_to or "",
            version=given.document.version.value,
            assumed=read_profile(given.capabilities.body) if given.capabilities else {},
            replace=None if replacing is None else push.replace_method,
        )
        self._arrivals.submit(caller.app, caller.source, order, replacing=replacing, done=done)

    def receipt(self, push: PushMessage, version: Version, received_at: Micros) -> bytes:
        """Return the answer to a push that is now durable."""
        done, name = self._live.now(), self._settings.name
        if not push.progress_notes:
            return write_receipt(
                push.push_id, version=version, product=PRODUCT, sender=name, reply_time=done
            )
        notes = (
            ProgressNote("received", "the push has been read and is valid", received_at),
            ProgressNote("accepted", "the push is stored and will be delivered", done),
        )
        result = ResponseResult(ACCEPTED, CODES[ACCEPTED].name)
        message = PushResponse(push.push_id, result, notes, sender_name=name, reply_time=done)
        return write_document(Document(message, version, SUPPORTED, PRODUCT))

    async def cancel(self, caller: Caller, message: CancelMessage) -> CancelResponse:
        """Cancel a push for the addresses whose delivery can still be cancelled."""
        known = await self._known(caller, message.push_id)
        if known is None or known.row is None:
            code = 2004 if known is None else 2008
            result = CancelResult(code, CODES[code].name, message.addresses)
            return CancelResponse(message.push_id, (result,))
        pairs = await self._cancelled(known, message.addresses)
        return CancelResponse(message.push_id, cancel_results(pairs))

    async def _cancelled(
        self, known: KnownPush, addresses: tuple[str, ...]
    ) -> list[tuple[str, int]]:
        wanted = _wanted(known, addresses)
        codes = await self._live.call(
            lambda gateway, now: gateway.pushes.cancel(known, tuple(wanted.values()), now)
        )
        if codes is None:
            codes = [(text, cancel_code(report)) for text, report in await self._over(known)]
        by_address = dict(codes)
        return [(asked, by_address.get(text, 2003)) for asked, text in wanted.items()]

    async def status(self, caller: Caller, message: StatusQueryMessage) -> StatusQueryResponse:
        """Return the state of a push for each of the addresses asked about."""
        known = await self._known(caller, message.push_id)
        if known is None or known.row is None:
            # Of a push older than the retention only its identity is known, not its outcome.
            code = 2004 if known is None else 3003
            result = StatusQueryResult(
                MessageState.UNKNOWN, code, CODES[code].name, addresses=message.addresses
            )
            return StatusQueryResponse(message.push_id, (result,))
        found = self._live.look(lambda gateway: gateway.pushes.reports(known))
        await self._live.durable()  # Report nothing that a crash could undo.
        reports = dict(found if found is not None else await self._over(known))
        not_addressed = PushReport(MessageState.UNKNOWN, 2003)
        wanted = _wanted(known, message.addresses)
        pairs = [(asked, reports.get(text, not_addressed)) for asked, text in wanted.items()]
        return StatusQueryResponse(message.push_id, status_results(pairs))

    async def _known(self, caller: Caller, push_id: str) -> KnownPush | None:
        identity = identify(caller.app, caller.source, push_id)
        known = (await self._lookups.find(identity)).get(identity)
        if known is None:
            # A push may be in a commit that is not written yet, so look again before saying it is
            # unknown.
            await self._live.durable()
            known = (await self._lookups.find(identity)).get(identity)
        return known

    async def _over(self, known: KnownPush) -> list[tuple[str, PushReport]]:
        """Return the reports of a push whose deliveries have all ended."""
        row = known.row
        assert row is not None
        messages = await self._live.read(lambda reader: reader.messages([known.message]))
        deliveries = await self._live.read(lambda reader: reader.deliveries(known.message))
        message = messages.get(known.message)
        if message is None:
            gone = PushReport(MessageState.UNKNOWN, 3003)
            return [(addressee.text, gone) for addressee in row.addresses]
        return reports_of(row, message.accepted_at, message.method, deliveries)

    def capabilities(self, caller: Caller, message: CcqMessage) -> tuple[CcqResponse, Entity]:
        """Return the capabilities of a client; for an address with several devices, the
        capabilities that all of them have."""

        def ask(gateway: Gateway) -> list[dict[str, str]]:
            place = gateway.pushes.find(caller.app, message.address)
            return [device.record.capabilities for device in place.devices.values()]

        first, *others = self._live.look(ask)
        shared = {n: v for n, v in first.items() if all(o.get(n) == v for o in others)}
        if not shared:
            raise NoCapabilities("no capabilities are known of this client")
        entity = Entity((("Content-Type", CONTENT_TYPE),), write_profile(shared))
        response = CcqResponse(message.address, 1000, CODES[1000].name, message.query_id)
        return response, entity


def _wanted(known: KnownPush, asked: tuple[str, ...]) -> dict[str, str]:
    """Map each address asked for, or each address of the push, from its present spelling to its
    spelling in the push. Answers repeat the present spelling (section 6)."""
    assert known.row is not None
    pushed = [addressee.text for addressee in known.row.addresses]
    return recognise(asked or pushed, pushed)
