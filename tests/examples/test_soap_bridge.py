"""The bridge in front of a server that knows SOAP only from the standard library's XML parser."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.etree import ElementTree

import pytest

from examples.soap_bridge import Bridge
from lasthop.device.client import Device
from lasthop.device.exchange.exchange import Exchange
from lasthop.device.exchange.xml import Xml
from lasthop.device.exchange.xml_message import XmlMessage
from lasthop_xml.soap.envelope import block
from lasthop_xml.soap.fault import FaultCode, SoapFault
from lasthop_xml.soap.names import NEXT, SOAP_NS
from lasthop_xml.xas.names import Name
from tests.device.gateway import APP, LiveGateway, live_gateway

pytestmark = pytest.mark.timeout(60)

ENVELOPE = "<s:Envelope xmlns:s='{ns}'><s:Body>{body}</s:Body></s:Envelope>"
FAULT = (
    "<s:Fault><s:Code><s:Value>s:Sender</s:Value></s:Code>"
    "<s:Reason><s:Text xml:lang='en'>no such goods</s:Text></s:Reason></s:Fault>"
)
LOG, KEEP = Name("urn:example", "log"), Name("urn:example", "keep")


class Shop(BaseHTTPRequestHandler):
    """Sells tea, and says so in XML."""

    asked: list[tuple[str, list[str]]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        envelope = ElementTree.fromstring(self.rfile.read(int(self.headers["content-length"])))
        header = envelope.find(f"{{{SOAP_NS}}}Header")
        blocks = [] if header is None else [child.tag for child in header]
        self.asked.append((self.headers["content-type"], blocks))
        goods = envelope.findtext(f"{{{SOAP_NS}}}Body/message/goods")
        if goods == "nonsense":
            status, text = 200, "<html>"
        elif goods == "tea":
            status, text = (
                200,
                ENVELOPE.format(ns=SOAP_NS, body="<answer><price>3.50</price></answer>"),
            )
        else:
            status, text = 400, ENVELOPE.format(ns=SOAP_NS, body=FAULT)
        self.send_response(status)
        self.send_header("content-type", "application/soap+xml; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Shop.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
async def gateway() -> AsyncIterator[LiveGateway]:
    async with live_gateway() as gateway:
        yield gateway


async def test_devices_ask_a_web_service(gateway: LiveGateway, server: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_address[1]}/soap"
    phone = Device(gateway.tcp_url, app=APP, name="phone", learn_heartbeat=False)
    back = Device(gateway.tcp_url, app=APP, name="bridge", learn_heartbeat=False)
    async with phone, back:
        await Bridge(back, url).serve("pricing")
        exchange = Exchange(phone, Xml(), timeout=10)

        async def ask(goods: str, *headers: tuple[Name, str]) -> XmlMessage:
            message = XmlMessage.from_pairs({"goods": goods})
            blocks = tuple(block(name, "x", role=role) for name, role in headers)
            return await exchange.call(
                "service:pricing", XmlMessage(message.body, blocks), operation="price"
            )

        answer = await ask("tea", (LOG, NEXT), (KEEP, "urn:other"))
        assert answer.pairs() == {"price": "3.50"}
        ((content_type, blocks),) = Shop.asked
        assert content_type == 'application/soap+xml; charset=utf-8; action="price"'
        assert blocks == [str(KEEP)]
        with pytest.raises(SoapFault, match="no such goods") as caught:
            await ask("coffee")
        assert caught.value.fault_code is FaultCode.SENDER
        with pytest.raises(SoapFault, match="the service did not answer in SOAP"):
            await ask("nonsense")


async def test_a_service_that_is_gone_is_a_fault_of_the_receiver(gateway: LiveGateway) -> None:
    back = Device(gateway.tcp_url, app=APP, name="bridge", learn_heartbeat=False)
    phone = Device(gateway.tcp_url, app=APP, name="phone", learn_heartbeat=False)
    async with back, phone:
        await Bridge(back, "http://127.0.0.1:1/").serve("pricing")
        with pytest.raises(SoapFault, match="the service cannot be reached") as caught:
            await Exchange(phone, Xml(), timeout=10).call(
                "service:pricing", XmlMessage.from_pairs({"goods": "tea"})
            )
        assert caught.value.fault_code is FaultCode.RECEIVER
