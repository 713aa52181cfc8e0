"""All settings of a gateway together, and what its parts take from them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lasthop.access.pap import PapSettings
from lasthop.access.receive.hub import ReceiveSettings
from lasthop.access.rest.settings import RestSettings
from lasthop.core.apps.behaviour import Behaviour
from lasthop.core.quota import Rate
from lasthop.core.rights.rule import AccessRule
from lasthop.decision.routes import Variant
from lasthop.runtime.settings.apps import AppBehaviour, SurrogateSettings
from lasthop.runtime.settings.capacity import LimitSettings, Ota, Retention, Topics
from lasthop.runtime.settings.issuers import IssuerSettings
from lasthop.runtime.settings.listeners import Beep, Http, Seqpacket, Tcp, Tls
from lasthop.runtime.settings.operators import Plugins, Traces
from lasthop.runtime.settings.other_ways import WaySettings
from lasthop.runtime.settings.publishers import Access, Pap, Quotas
from lasthop.runtime.settings.rights import RightsSettings, RuleSettings
from lasthop.runtime.settings.short_messages import DefaultRouteSettings, SmscSettings
from lasthop.runtime.surrogates.duty import Employment
from lasthop.runtime.units import ListenAddress
from lasthop.store.base import Durability


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A gateway's settings. Times end in d, h, m, s or ms; sizes in B, KiB, MiB or GiB."""

    data: Annotated[
        str, Meta(description="Directory of the store and the event log; created if missing.")
    ] = "lasthop-data"
    name: Annotated[
        str,
        Meta(description="This gateway's name in the event log.", pattern="^[A-Za-z0-9._-]{1,64}$"),
    ] = "gateway"
    durability: Annotated[
        Durability,
        Meta(
            description='"full": what was accepted survives a loss of power. "relaxed": it survives'
            " kill -9 only; for benchmarks and throw-away set-ups."
        ),
    ] = Durability.FULL
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description='How much is logged to standard error; "debug" has every event.'),
    ] = "info"
    http: Http = msgspec.field(default_factory=Http)
    tcp: Tcp = msgspec.field(default_factory=Tcp)
    beep: Beep = msgspec.field(default_factory=Beep)
    seqpacket: Seqpacket = msgspec.field(default_factory=Seqpacket)
    tls: Tls = msgspec.field(default_factory=Tls)
    ways: WaySettings = msgspec.field(default_factory=WaySettings)
    pap: Pap = msgspec.field(default_factory=Pap)
    access: Access = msgspec.field(default_factory=Access)
    rights: RightsSettings = msgspec.field(default_factory=RightsSettings)
    ota: Ota = msgspec.field(default_factory=Ota)
    retention: Retention = msgspec.field(default_factory=Retention)
    topics: Topics = msgspec.field(default_factory=Topics)
    limits: LimitSettings = msgspec.field(default_factory=LimitSettings)
    quotas: Quotas = msgspec.field(default_factory=Quotas)
    traces: Traces = msgspec.field(default_factory=Traces)
    plugins: Plugins = msgspec.field(default_factory=Plugins)
    behaviours: dict[str, AppBehaviour] = {}
    surrogates: dict[str, SurrogateSettings] = {}
    smsc: dict[str, SmscSettings] = {}
    default_routes: dict[str, DefaultRouteSettings] = {}
    rules: list[RuleSettings] = []
    issuers: list[IssuerSettings] = []

    def configured(self) -> dict[str, Behaviour]:
        """Return the configured behaviour of each app."""
        return {app: behaviour.behaviour() for app, behaviour in self.behaviours.items()}

    @property
    def variants(self) -> frozenset[str]:
        """The protocols that the gateway uses over the air."""
        by_sms = frozenset({Variant.SMS}) if self.smsc else frozenset[str]()
        return self.ota.variants | by_sms | frozenset(self.plugins.carriers)

    def employments(self) -> dict[str, Employment]:
        """Return the surrogates of all apps, by app."""
        return {app: surrogate.employment(app) for app, surrogate in self.surrogates.items()}

    @property
    def open_house(self) -> bool:
        """Whether publishers and devices without a credential are accepted."""
        private = self.http.listen.loopback and self.tcp.listen.loopback
        beep = self.beep_listen
        private = private and (beep is None or beep.loopback)
        return private and self.access.anonymous == "loopback"

    @property
    def least(self) -> bool:
        """Whether a device may send, subscribe and join only where a rule allows it."""
        return self.rights.devices == "least" and not self.open_house

    @property
    def device_messages(self) -> Rate | None:
        """The rate at which one device may send; None on an open gateway."""
        quotas = self.quotas
        if self.open_house:
            return None
        return Rate(quotas.device_messages_per_second, quotas.device_messages_burst)

    def configured_rules(self) -> tuple[AccessRule, ...]:
        """Return the rules of the configuration."""
        return tuple(rule.rule(number) for number, rule in enumerate(self.rules, 1))

    @property
    def beep_listen(self) -> ListenAddress | None:
        """The address at which devices connect by BEEP, or None."""
        return ListenAddress.parse(self.beep.listen) if self.beep.listen else None

    def initiators(self) -> PapSettings:
        """Return the settings of the PAP door."""
        pap = self.pap
        private = pap.notify_private == "always" or (
            pap.notify_private == "when-open" and self.open_house
        )
        return PapSettings(
            name=self.name,
            notify_hosts=listed(pap.notify_hosts),
            notify_private=private,
            traced=bool(self.traces.endpoint),
        )

    def receiving(self) -> ReceiveSettings:
        """Return the settings of receiving over HTTP."""
        return ReceiveSettings(
            listeners=self.http.listeners,
            per_address=self.http.listeners_per_address,
            keepalive=self.http.keepalive.seconds,
        )

    def rest(self) -> RestSettings:
        """Return the settings of the REST door."""
        quotas = self.quotas
        return RestSettings(
            open_house=self.open_house,
            max_body=self.limits.request,
            max_messages=self.limits.batch,
            max_message=max(self.limits.body, self.limits.largest_body),
            messages=Rate(quotas.messages_per_second, quotas.messages_burst),
            bytes=Rate(max(1, quotas.bytes_per_second), max(1, quotas.bytes_burst)),
            pap=self.pap.path,
            traced=bool(self.traces.endpoint),
        )


def listed(text: str) -> tuple[str, ...]:
    """Return the items of a comma-separated list, in lower case."""
    return tuple(item.strip().lower() for item in text.split(",") if item.strip())
