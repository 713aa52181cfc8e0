"""A web service behind the gateway: the bridge posts requests for `service:NAME` to a SOAP server
over HTTP, and sends the server's answers back to the devices that asked.

    python examples/soap_bridge.py --service pricing --post-to http://localhost:9000/soap

Devices send the most compact form that the bridge reads; the server gets SOAP 1.2 in XML. In terms
of SOAP the bridge is an intermediary: it removes header blocks that are for the bridge, and
forwards the others.
"""

from __future__ import annotations

import argparse
import asyncio
import urllib.error
import urllib.request

from lasthop.device.client import Device
from lasthop.device.exchange.binding import Content
from lasthop.device.exchange.exchange import Exchange
from lasthop.device.exchange.received import Received
from lasthop.device.exchange.xml import SOAP_XML, Xml
from lasthop.device.exchange.xml_message import XmlMessage
from lasthop.errors import Rejected
from lasthop.wire.hop.services import Service
from lasthop_xml.soap.envelope import Envelope
from lasthop_xml.soap.fault import FaultCode, SoapFault
from lasthop_xml.soap.node import SoapNode

TIMEOUT = 20.0
"""Seconds that the bridge waits for the server: below the 30 that exchanges wait by default."""

MAX_ANSWER = 1 << 20
"""The bytes of an answer at most: the default limit for the body of a message."""


class Bridge:
    """A device that posts the requests it gets to a server, and replies with the answers."""

    def __init__(self, device: Device, url: str) -> None:
        self._device = device
        self._url = url
        self._http = Xml(accept=[SOAP_XML])
        self._node = SoapNode(ultimate=False)

    async def serve(self, name: str) -> None:
        """Offer the service, and return when the gateway has accepted the offer."""
        exchange = Exchange(self._device, Xml())
        offered = await exchange.serve(Service(name, about=self._url), {"": self.ask})
        await offered.accepted()

    async def ask(self, received: Received[XmlMessage]) -> XmlMessage:
        """Post one request to the server, and return its answer."""
        message = received.value
        passed = self._node.passed_on(Envelope(message.body, list(message.headers)))
        onward = XmlMessage(passed.body, tuple(passed.headers), message.addressing)
        return await asyncio.to_thread(self._post, onward, received.operation)

    def _post(self, message: XmlMessage, operation: str) -> XmlMessage:
        content = self._http.encode(message, self._url)
        action = f'; action="{operation}"' if operation.isidentifier() else ""
        request = urllib.request.Request(
            self._url, content.body, {"Content-Type": f"{SOAP_XML}; charset=utf-8{action}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                body = response.read(MAX_ANSWER + 1)
        except urllib.error.HTTPError as error:
            # A SOAP fault has the status 400 or 500, and its body is a message like others
            # (SOAP 1.2, part 2, section 7.5).
            body = error.read(MAX_ANSWER + 1)
        except OSError as error:
            raise SoapFault(FaultCode.RECEIVER, f"the service cannot be reached: {error}") from None
        if len(body) > MAX_ANSWER:
            raise SoapFault(FaultCode.RECEIVER, "the service's answer is too large")
        try:
            return self._http.decode(Content(SOAP_XML, body), self._url)
        except SoapFault:
            raise
        except Rejected:
            raise SoapFault(FaultCode.RECEIVER, "the service did not answer in SOAP") from None


async def main() -> None:
    """Run a bridge until it is stopped."""
    options = argparse.ArgumentParser(description="A SOAP service behind the gateway.")
    options.add_argument("--gateway", default="tcp://localhost:7300")
    options.add_argument("--app", default="default")
    options.add_argument("--name", default="soap-bridge")
    options.add_argument("--token")
    options.add_argument("--service", required=True, help="what devices ask for")
    options.add_argument("--post-to", required=True, help="the server's URL")
    given = options.parse_args()
    device = Device(given.gateway, app=given.app, name=given.name, token=given.token)
    async with device:
        await Bridge(device, given.post_to).serve(given.service)
        print(f"service:{given.service} is answered by {given.post_to}")
        await device.run()


if __name__ == "__main__":
    asyncio.run(main())
