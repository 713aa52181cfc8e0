"""The settings of short messages: the SMSCs to which they are handed, and the addresses that need
no registration."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lasthop.clock import SECOND
from lasthop.core.pushes.default_routes import DefaultRoute
from lasthop.delivery.sms.smpp_link import SmppTerms, connections_of
from lasthop.delivery.sms.smpp_units import LongForm, OneShot, SmppForm
from lasthop.runtime.units import Duration
from lasthop.wire.smpp.esme import EsmeTerms
from lasthop.wire.smpp.smpp_pdus import Bind, SmppAddress, phone_address


class SmscSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An SMSC to which short messages are handed, by the name NAME; one such section for every
    SMSC. The cheapest that is up is used, and among those of one price the first."""

    url: Annotated[
        str,
        Meta(
            description="Where it is: smpp://HOST:PORT, or smpps:// for TLS.",
            pattern=r"^smpps?://(\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+)(:\d{1,5})?/?$",
            examples=["smpp://127.0.0.1:2775"],
        ),
    ]
    system_id: Annotated[
        str, Meta(description="The name of the account.", max_length=15, pattern="^[ -~]*$")
    ] = ""
    password: Annotated[
        str, Meta(description="Its password.", max_length=8, pattern="^[ -~]*$")
    ] = ""
    system_type: Annotated[
        str,
        Meta(description="The kind of system, if the operator asks for one.", max_length=12),
    ] = ""
    sender: Annotated[
        str,
        Meta(
            description="The number or name that phones see; empty: that of the account.",
            max_length=20,
            pattern="^[ -~]*$",
        ),
    ] = ""
    mode: Annotated[
        Literal["transceiver", "transmitter", "pair"],
        Meta(
            description='"transceiver" sends and receives over one connection, "pair" over two;'
            ' "transmitter" only sends, and gets no receipts.'
        ),
    ] = "transceiver"
    window: Annotated[
        int, Meta(description="Messages without an answer at a time.", ge=1, le=1000)
    ] = 10
    rate: Annotated[
        int, Meta(description="Messages a second; 0 for no limit.", ge=0, le=100_000)
    ] = 0
    patience: Annotated[Duration, Meta(description="How long an answer may take.")] = Duration(
        30 * SECOND
    )
    idle: Annotated[
        Duration, Meta(description="Silence after which the SMSC is asked whether it is there.")
    ] = Duration(30 * SECOND)
    long: Annotated[
        LongForm,
        Meta(
            description="Where ports and parts are written: in a user data header, in optional"
            " parameters, or with the whole content as one payload."
        ),
    ] = LongForm.HEADER
    one_shot: Annotated[
        OneShot,
        Meta(
            description="How a push is attempted only once: not at all, by submit_sm in datagram"
            " mode, or by data_sm in transaction mode."
        ),
    ] = OneShot.REFUSE
    receipts: Annotated[
        bool,
        Meta(description="Whether the network is asked to say when a handset has a message."),
    ] = True
    service_type: Annotated[
        str, Meta(description="SMPP's service type, if the operator asks for one.", max_length=5)
    ] = ""
    octets_coding: Annotated[
        int, Meta(description="The data coding of pushes: 245 or 4.", ge=0, le=255)
    ] = 0xF5
    price: Annotated[
        int,
        Meta(description="What one short message costs, in millionths of your currency.", ge=0),
    ] = 0

    @property
    def place(self) -> tuple[str, int, bool]:
        """The host, the port and whether TLS is used."""
        scheme, _, rest = self.url.rstrip("/").partition("://")
        host, colon, port = rest.rpartition(":")
        if not colon or rest.endswith("]"):
            host, port = rest, "2775"
        return host.strip("[]"), int(port), scheme == "smpps"

    def terms(self, name: str) -> SmppTerms:
        """Return the terms of the SMSC in the form that its link uses."""
        host, port, _ = self.place
        account = Bind(self.system_id, self.password, self.system_type)
        connection = EsmeTerms(
            bind=account,
            window=self.window,
            rate=self.rate,
            patience=self.patience,
            idle=self.idle,
        )
        form = SmppForm(
            sender=phone_address(self.sender) if self.sender else SmppAddress(),
            service_type=self.service_type,
            octets_coding=self.octets_coding,
            long=self.long,
            one_shot=self.one_shot,
            receipts=self.receipts and self.mode != "transmitter",
        )
        return SmppTerms(
            name=name,
            host=host,
            port=port,
            connections=connections_of(self.mode, connection),
            form=form,
            price=self.price,
        )


class DefaultRouteSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Addresses that PAP initiators reach without registering a device, by the name NAME; one such
    section for every kind. Without one, an address that no device has is refused."""

    addresses: Annotated[
        tuple[str, ...],
        Meta(description='The addresses, such as "PLMN:+1555*" or "IPv4:192.0.2.*".', min_length=1),
    ]
    who: Annotated[
        tuple[str, ...],
        Meta(
            description='The initiators that may address them: names of credentials, or "*" for'
            " all. A name may have *.",
            min_length=1,
        ),
    ]
    variant: Annotated[
        str, Meta(description="The protocol by which they are reached: sms, wsp, http ...")
    ] = "sms"
    app: Annotated[str, Meta(description="The app of these initiators.")] = "default"
    most: Annotated[
        int,
        Meta(
            description="Addresses that are remembered at a time; more are refused.",
            ge=1,
            le=1_000_000,
        ),
    ] = 100_000

    def route(self, name: str) -> DefaultRoute:
        """Return the default route in the form that the gateway uses."""
        return DefaultRoute(
            name=name,
            app=self.app,
            addresses=self.addresses,
            who=self.who,
            variant=self.variant,
            most=self.most,
        )
