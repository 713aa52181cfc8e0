"""Everything that can be set, in one place: a TOML file, then LASTHOP_* variables, then options.

Each setting is a typed field with its explanation; `lasthop config` prints them all, and
`lasthop.example.toml` is that print. A name that is not here is an error that says which one was
probably meant.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from lasthop.access.callers import APP_NAME
from lasthop.access.pap import PapSettings
from lasthop.access.quota import Rate
from lasthop.access.rest.settings import RestSettings
from lasthop.clock import DAY, SECOND
from lasthop.core.feeds.policies import Choice
from lasthop.core.mailroom import Limits as CoreLimits
from lasthop.core.notification import Patience
from lasthop.core.surrogates.post import Failing, SurrogateTerms
from lasthop.decision.routes import Variant
from lasthop.delivery.http import LONGEST_HOLD
from lasthop.errors import InvalidRequest
from lasthop.runtime.surrogates.duty import Duty, Employment, Launch
from lasthop.runtime.units import Address, Duration, LimitList, Size
from lasthop.store.base import Durability

SURROGATES = "surrogates"
"""The one part that has a section for every app."""

DEFAULT_HTTP = Address("127.0.0.1:8080")
DEFAULT_TCP = Address("127.0.0.1:7300")

_patience = Patience()

PREFIX = "LASTHOP_"
CLIENT_VARIABLES = frozenset({"LASTHOP_CONFIG", "LASTHOP_URL", "LASTHOP_TOKEN", "LASTHOP_APP"})
"""Read by commands, and no settings of the gateway."""

_KUBERNETES = re.compile(r"LASTHOP_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_.*)?)")
"""What Kubernetes adds to every pod beside a service named `lasthop`: not meant for us."""


class Http(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The REST door, WebSocket devices, /health and /metrics."""

    listen: Annotated[Address, Meta(description="Port 0 lets the system choose.")] = DEFAULT_HTTP
    websocket: Annotated[
        str,
        Meta(
            description="Path at which devices connect by WebSocket; empty turns it off.",
            pattern="^(/.*)?$",
        ),
    ] = "/hop"
    requests: Annotated[
        str,
        Meta(
            description="Path at which devices connect that can use nothing but HTTP requests,"
            " held or polling; empty turns it off.",
            pattern="^(/.*[^/])?$",
        ),
    ] = "/hop"
    hold: Annotated[
        Duration,
        Meta(
            description="How long a request of theirs waits for something to say: less than the"
            " patience of the proxies on the way."
        ),
    ] = Duration(LONGEST_HOLD)
    drain: Annotated[
        Duration, Meta(description="How long a shutdown waits for requests to be answered.")
    ] = Duration(5 * SECOND)


class Tcp(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Devices that connect by TCP."""

    listen: Annotated[Address, Meta(description="Port 0 lets the system choose.")] = DEFAULT_TCP


class Beep(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Devices that connect by BEEP."""

    listen: Annotated[
        str,
        Meta(description='Address, such as "127.0.0.1:7301"; empty turns it off.'),
    ] = ""


class Seqpacket(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Devices on the same machine, or nearby, over sockets that keep boundaries."""

    path: Annotated[str, Meta(description="Path of a Unix socket; empty turns it off.")] = ""
    psm: Annotated[
        int,
        Meta(
            description="Port of Bluetooth's L2CAP, where the machine has it: odd, from 4097 on; 0"
            " turns it off.",
            ge=0,
            le=65535,
        ),
    ] = 0


class Tls(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Certificate and key for all listeners; without them they speak plain HTTP and TCP."""

    cert: Annotated[str, Meta(description="PEM file with the certificate and its chain.")] = ""
    key: Annotated[str, Meta(description="PEM file with the private key.")] = ""
    required: Annotated[
        bool,
        Meta(description="Do not start without a certificate: nothing is ever said in the clear."),
    ] = False
    client_ca: Annotated[
        str,
        Meta(
            description="PEM file with the authorities of client certificates, by whose subjects"
            " callers over HTTP are known; empty asks for none."
        ),
    ] = ""


class Pap(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The door for push initiators that speak PAP, and how they hear of outcomes."""

    path: Annotated[
        str, Meta(description="Where they POST to; empty turns it off.", pattern="^(/.*)?$")
    ] = "/pap"
    gateways: Annotated[
        str,
        Meta(
            description="Names of this gateway in client addresses (after the @), separated by"
            " commas; empty: any name will do."
        ),
    ] = ""
    notify_hosts: Annotated[
        str,
        Meta(
            description="Hosts to which outcomes are reported, separated by commas; *.example.org"
            " for all below a name; empty: any host."
        ),
    ] = ""
    notify_private: Annotated[
        Literal["when-open", "always", "never"],
        Meta(
            description="Whether outcomes are reported to this machine and to private networks:"
            ' "when-open" while everyone is let in without a credential.'
        ),
    ] = "when-open"
    notify_for: Annotated[Duration, Meta(description="How long we try to report an outcome.")] = (
        Duration(_patience.give_up_after)
    )
    response_wait: Annotated[
        Duration,
        Meta(description="How long a report waits for the device's answer, where one is wanted."),
    ] = Duration(_patience.response_wait)

    def patience(self) -> Patience:
        """As the gateway takes it."""
        return Patience(give_up_after=self.notify_for, response_wait=self.response_wait)


class Access(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Who may come in without a credential."""

    anonymous: Annotated[
        Literal["loopback", "never"],
        Meta(
            description='"loopback" lets everyone in as long as every listener is bound to this'
            ' machine alone; "never" always asks for a credential.'
        ),
    ] = "loopback"


class Retention(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long things are kept once they are done with."""

    messages: Annotated[
        Duration, Meta(description="Messages that have reached an end on every device.")
    ] = Duration(7 * DAY)
    keys: Annotated[
        Duration, Meta(description="Idempotency keys: how late a publisher may try again.")
    ] = Duration(2 * DAY)
    log: Annotated[Duration, Meta(description="Segments of the event log.")] = Duration(30 * DAY)


_limits = CoreLimits()
_rest = RestSettings()


class Ota(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Pushes over the air, to devices that have routes."""

    source: Annotated[
        Address, Meta(description="Where datagrams leave from; port 0 lets the system choose.")
    ] = Address("0.0.0.0:0")
    sessions: Annotated[
        str,
        Meta(
            description="UDP address for WSP sessions, usually at port 9201; empty turns them off."
        ),
    ] = ""
    http: Annotated[
        str,
        Meta(
            description="TCP address at which clients of OTA-HTTP connect, usually at port 4035;"
            " empty: they are only connected to."
        ),
    ] = ""
    contact: Annotated[
        str,
        Meta(
            description="IP address that clients are told to open sessions and connections at,"
            " where it is not the one of the settings above."
        ),
    ] = ""
    attempts: Annotated[
        int,
        Meta(description="Of a push that leaves and is never confirmed.", ge=1, le=100),
    ] = _limits.carried_attempts
    patience: Annotated[
        Duration,
        Meta(description="How long a device is looked for that cannot be reached at all."),
    ] = Duration(_limits.carried_patience)

    @property
    def variants(self) -> frozenset[Variant]:
        """What is spoken over the air: sessions only where there is a place for them."""
        return frozenset(Variant) - (frozenset() if self.sessions else {Variant.WSP_SESSION})


class Limits(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one gateway takes on."""

    body: Annotated[Size, Meta(description="The body of one message.")] = Size(_limits.body)
    largest_body: Annotated[
        Size, Meta(description="What an app's behaviour may allow instead.")
    ] = Size(_limits.largest_body)
    stream_window: Annotated[
        Size, Meta(description="Of one stream, what is held here while its receiver is behind.")
    ] = Size(_limits.stream_window)
    streams: Annotated[int, Meta(description="Streams that are open at a time.", ge=1)] = (
        _limits.streams
    )
    request: Annotated[Size, Meta(description="One HTTP request, with all its messages.")] = Size(
        _rest.max_body
    )
    batch: Annotated[int, Meta(description="Messages in one request.", ge=1)] = _rest.max_messages
    open_per_device: Annotated[
        int,
        Meta(description="Messages that wait for one device; more are refused.", ge=1),
    ] = _limits.open_per_device
    resident: Annotated[
        Size,
        Meta(description="Bodies in memory for devices that are away; the store has them all."),
    ] = Size(_limits.resident)
    context: Annotated[Size, Meta(description="A device's report about itself.")] = Size(
        _limits.context
    )
    subscriptions_per_device: Annotated[int, Meta(description="Topics of one device.", ge=1)] = (
        _limits.subscriptions_per_device
    )
    circles_per_device: Annotated[
        int, Meta(description="Groups and queues of one device.", ge=1)
    ] = _limits.circles_per_device
    bound_members: Annotated[
        int, Meta(description="Members that an atomic or claimable message is for.", ge=1)
    ] = _limits.bound_members
    queue_length: Annotated[
        int, Meta(description="Messages that wait in one queue; more are refused.", ge=1)
    ] = _limits.queue_length
    claim_patience: Annotated[
        Duration, Meta(description="How long a message without a deadline can be claimed.")
    ] = Duration(_limits.claim_patience)
    shared: Annotated[
        LimitList,
        Meta(
            description="What all devices together may be sent, separated by semicolons, such as"
            ' "5000000 bytes per day over mno; 100 messages per week of news".'
        ),
    ] = LimitList("")
    zone: Annotated[
        str, Meta(description="Where the days of the shared limits begin, such as Europe/Oslo.")
    ] = "UTC"
    retained: Annotated[
        int,
        Meta(
            description="Messages of one ranked topic that wait for one device; then the worst go.",
            ge=1,
        ),
    ] = _limits.retained
    preserve: Annotated[
        Duration, Meta(description="How long a device's session outlives its last connection.")
    ] = Duration(_limits.preserve)
    heartbeat: Annotated[
        Duration, Meta(description="Silence after which a device asks whether we are there.")
    ] = Duration(_limits.heartbeat)

    def core(self, ota: Ota) -> CoreLimits:
        """As the gateway takes them."""
        return CoreLimits(
            carried_attempts=ota.attempts,
            carried_patience=ota.patience,
            body=self.body,
            largest_body=max(self.body, self.largest_body),
            stream_window=self.stream_window,
            streams=self.streams,
            open_per_device=self.open_per_device,
            resident=self.resident,
            context=self.context,
            subscriptions_per_device=self.subscriptions_per_device,
            circles_per_device=self.circles_per_device,
            bound_members=self.bound_members,
            queue_length=self.queue_length,
            claim_patience=self.claim_patience,
            retained=self.retained,
            max_frame=self.body + 1024,
            preserve=self.preserve,
            heartbeat=self.heartbeat,
        )


class Topics(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is sent ahead to devices that keep the best of a topic until it is read."""

    policy: Annotated[
        Literal["unified", "predictive", "buffer", "rate", "expiration", "on-line", "on-demand"],
        Meta(description="The forwarding policy of subscriptions that name none."),
    ] = "unified"

    def choice(self) -> Choice:
        """As the gateway takes it."""
        return Choice(self.policy)


class Quotas(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one credential may publish; beyond it the answer is 429 and when to come back."""

    messages_per_second: Annotated[int, Meta(description="In the long run.", ge=1)] = (
        _rest.messages.per_second
    )
    messages_burst: Annotated[int, Meta(description="At once.", ge=1)] = _rest.messages.burst
    bytes_per_second: Annotated[Size, Meta(description="In the long run.")] = Size(
        _rest.bytes.per_second
    )
    bytes_burst: Annotated[Size, Meta(description="At once.")] = Size(_rest.bytes.burst)


_surrogate = SurrogateTerms()

MAX_STATE = 16 << 20
"""Bytes of a surrogate's state: a worker is given all of it at once, and it is in memory twice."""


class Surrogate(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A class that acts for the devices of the app APP; one such section for every app that has
    one."""

    place: Annotated[
        str,
        Meta(
            description="Where the class is: package.module:Class.",
            pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        ),
    ] = msgspec.field(name="class")
    path: Annotated[str, Meta(description="Directory in which its module is looked for first.")] = (
        ""
    )
    time: Annotated[
        Duration, Meta(description="What one message may take; then the worker is replaced.")
    ] = Duration(5 * SECOND)
    memory: Annotated[Size, Meta(description="Address space of the worker.")] = Size(1 << 30)
    state: Annotated[Size, Meta(description="What it may remember, at most 16MiB.")] = Size(
        _surrogate.state
    )
    queue: Annotated[
        int, Meta(description="Messages that may wait for it; more are refused.", ge=1)
    ] = _surrogate.queue
    attempts: Annotated[
        int, Meta(description="At one message, before it goes on without it.", ge=1, le=10)
    ] = _surrogate.attempts
    failing: Annotated[
        Literal["relay", "refuse"],
        Meta(
            description='What becomes of a message at which it fails: "relay" lets it go on as it'
            ' is, "refuse" stops it.'
        ),
    ] = _surrogate.failing.value

    def employment(self, app: str) -> Employment:
        """As the gateway takes it."""
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


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A gateway's settings. Times end in d, h, m, s or ms; sizes in B, KiB, MiB or GiB."""

    data: Annotated[
        str, Meta(description="Directory of the store and the event log; made if missing.")
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
        Meta(description='How much is said on standard error; "debug" has every event.'),
    ] = "info"
    http: Http = msgspec.field(default_factory=Http)
    tcp: Tcp = msgspec.field(default_factory=Tcp)
    beep: Beep = msgspec.field(default_factory=Beep)
    seqpacket: Seqpacket = msgspec.field(default_factory=Seqpacket)
    tls: Tls = msgspec.field(default_factory=Tls)
    pap: Pap = msgspec.field(default_factory=Pap)
    access: Access = msgspec.field(default_factory=Access)
    ota: Ota = msgspec.field(default_factory=Ota)
    retention: Retention = msgspec.field(default_factory=Retention)
    topics: Topics = msgspec.field(default_factory=Topics)
    limits: Limits = msgspec.field(default_factory=Limits)
    quotas: Quotas = msgspec.field(default_factory=Quotas)
    surrogates: dict[str, Surrogate] = {}

    def employments(self) -> dict[str, Employment]:
        """The surrogates of all apps."""
        return {app: surrogate.employment(app) for app, surrogate in self.surrogates.items()}

    @property
    def open_house(self) -> bool:
        """Whether anonymous publishers and devices are let in."""
        private = self.http.listen.loopback and self.tcp.listen.loopback
        beep = self.beep_listen
        private = private and (beep is None or beep.loopback)
        return private and self.access.anonymous == "loopback"

    @property
    def beep_listen(self) -> Address | None:
        """Where devices connect by BEEP, if they may."""
        return Address.parse(self.beep.listen) if self.beep.listen else None

    def initiators(self) -> PapSettings:
        """As the PAP door takes them."""
        pap = self.pap
        private = pap.notify_private == "always" or (
            pap.notify_private == "when-open" and self.open_house
        )
        return PapSettings(
            name=self.name, notify_hosts=listed(pap.notify_hosts), notify_private=private
        )

    def rest(self) -> RestSettings:
        """As the REST door takes them."""
        quotas = self.quotas
        return RestSettings(
            open_house=self.open_house,
            max_body=self.limits.request,
            max_messages=self.limits.batch,
            max_message=max(self.limits.body, self.limits.largest_body),
            messages=Rate(quotas.messages_per_second, quotas.messages_burst),
            bytes=Rate(max(1, quotas.bytes_per_second), max(1, quotas.bytes_burst)),
        )


def listed(text: str) -> tuple[str, ...]:
    """The items of a list that is separated by commas."""
    return tuple(item.strip().lower() for item in text.split(",") if item.strip())


Values: TypeAlias = dict[str, Any]
Section: TypeAlias = type[msgspec.Struct]


def load(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """Settings from a file, overridden by variables, overridden by options such as `http.listen`.

    Raises `InvalidRequest` with one line that names the place and the setting.
    """
    settings = Settings()
    if file is not None:
        settings = _merged(settings, _read(file), str(file))
    settings = _merged(settings, _from_environment(environment or {}), "the environment")
    given = {name: value for name, value in (options or {}).items() if value is not None}
    settings = _merged(settings, _nested(given), "the command line")
    if bool(settings.tls.cert) != bool(settings.tls.key):
        raise InvalidRequest("tls.cert and tls.key are needed together")
    try:
        settings.beep_listen  # noqa: B018
    except ValueError as error:
        raise InvalidRequest(f"beep.listen: {error}") from None
    if settings.tls.required and not settings.tls.cert:
        raise InvalidRequest("tls.required needs tls.cert and tls.key")
    if settings.tls.required and settings.seqpacket.psm:
        raise InvalidRequest("tls.required rules out seqpacket.psm: Bluetooth has no TLS")
    if settings.tls.client_ca and not settings.tls.cert:
        raise InvalidRequest("tls.client_ca needs tls.cert and tls.key")
    return settings


def names(of: Section = Settings, prefix: str = "") -> Iterator[str]:
    """Every setting's dotted name, in order."""
    for name, hint in get_type_hints(of).items():
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from names(hint, f"{prefix}{name}.")
        elif name != SURROGATES:
            yield prefix + name


def choices(name: str) -> tuple[str, ...]:
    """The words that a setting may have; none when any value of its type will do."""
    hint: Any = Settings
    for part in name.split("."):
        hint = get_type_hints(hint)[part]
    return allowed_words(hint)


def allowed_words(hint: Any) -> tuple[str, ...]:
    """The words that a value of this type may be; none when it need not be one of a few."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return tuple(hint)
    return get_args(hint)


def variable(name: str) -> str:
    """The environment variable of a setting.

    >>> variable("http.listen")
    'LASTHOP_HTTP_LISTEN'
    """
    return PREFIX + name.replace(".", "_").upper()


def _read(file: Path) -> Values:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InvalidRequest(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file}: {error}") from None


def _from_environment(environment: Mapping[str, str]) -> Values:
    known = {variable(name): name for name in names()}
    values: dict[str, object] = {}
    for key, value in environment.items():
        if not key.startswith(PREFIX) or key in CLIENT_VARIABLES or _KUBERNETES.fullmatch(key):
            continue
        if key not in known:
            raise InvalidRequest(f"unknown variable {key}{_guess(key, known)}")
        values[known[key]] = value
    return _nested(values)


def _nested(values: Mapping[str, object]) -> Values:
    nested: Values = {}
    for name, value in values.items():
        *sections, last = name.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return nested


def _merged(settings: Settings, values: Values, origin: str) -> Settings:
    surrogates = settings.surrogates | _surrogates(values.get(SURROGATES, {}), origin)
    values = {name: value for name, value in values.items() if name != SURROGATES}
    _refuse_unknown(values, origin)
    merged = _converted(settings, values, origin)
    merged.surrogates = surrogates
    return merged


def _surrogates(sections: object, origin: str) -> dict[str, Surrogate]:
    """A section for each app that has a surrogate."""
    if not isinstance(sections, dict) or not all(isinstance(v, dict) for v in sections.values()):
        raise InvalidRequest(f"{origin}: surrogates are sections: write [surrogates.APP]")
    known = {field.encode_name for field in msgspec.structs.fields(Surrogate)}
    found: dict[str, Surrogate] = {}
    for app, section in sections.items():
        if not APP_NAME.fullmatch(app):
            raise InvalidRequest(f"{origin}: surrogates.{app}: not the name of an app")
        for name in section:
            if name not in known:
                guess = _guess(name, known)
                raise InvalidRequest(f"{origin}: unknown setting surrogates.{app}.{name}{guess}")
        try:
            found[app] = msgspec.convert(section, Surrogate, strict=False, dec_hook=_decode)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$.")
            place = f"surrogates.{app}" + (f".{path.rstrip('`')}" if path else "")
            raise InvalidRequest(f"{origin}: {place}: {message.replace('`', '')}") from None
        if found[app].state > MAX_STATE:
            raise InvalidRequest(f"{origin}: surrogates.{app}.state: at most {Size(MAX_STATE)}")
    return found


def _converted(settings: Settings, values: Values, origin: str) -> Settings:
    merged: Values = {}
    for name in Settings.__struct_fields__:
        if name == SURROGATES:
            continue
        current, new = getattr(settings, name), values.get(name, {})
        if isinstance(current, msgspec.Struct) and isinstance(new, dict):
            merged[name] = {f: getattr(current, f) for f in current.__struct_fields__} | new
        else:
            merged[name] = values.get(name, current)
    try:
        return msgspec.convert(merged, Settings, strict=False, dec_hook=_decode)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        name = path.rstrip("`")
        allowed = choices(name)
        if allowed:
            message = "expected " + " or ".join(f'"{choice}"' for choice in allowed)
        raise InvalidRequest(f"{origin}: {name}: {message.replace('`', '')}") from None


def _refuse_unknown(values: Values, origin: str) -> None:
    known = set(names())
    sections = {name.partition(".")[0] for name in known if "." in name}
    for name, value in values.items():
        if isinstance(value, dict):
            given = [f"{name}.{inner}" for inner in value]
        elif name in sections:
            raise InvalidRequest(f"{origin}: {name} is a section: write [{name}]")
        else:
            given = [name]
        for full in given:
            if full not in known:
                raise InvalidRequest(f"{origin}: unknown setting {full}{_guess(full, known)}")


def _guess(name: str, known: set[str] | Mapping[str, str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if not close:
        # A right name in the wrong section, or in none.
        last = name.rpartition(".")[2]
        close = [other for other in sorted(known) if other.rpartition(".")[2] == last]
    return f"; did you mean {close[0]}?" if close else ""


def _decode(kind: type, value: object) -> object:
    if isinstance(value, kind):
        return value
    if kind in (Duration, Size, Address, LimitList):
        return kind.parse(value)
    raise NotImplementedError(kind)


def values(settings: Settings) -> Values:
    """Settings as plain values, as they are written."""
    plain: Values = {}
    for name in names():
        value: Any = settings
        for part in name.split("."):
            value = getattr(value, part)
        plain[name] = _plain(value)
    nested = _nested(plain)
    if settings.surrogates:
        nested[SURROGATES] = {
            app: {
                field.encode_name: _plain(getattr(surrogate, field.name))
                for field in msgspec.structs.fields(surrogate)
            }
            for app, surrogate in settings.surrogates.items()
        }
    return nested


def _plain(value: object) -> object:
    return value if type(value) is int else str(value)
