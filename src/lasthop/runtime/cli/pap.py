"""`lasthop pap`: a push initiator on the command line, for any Push Proxy Gateway."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lasthop.clock import Micros
from lasthop.errors import InvalidRequest
from lasthop.runtime.cli.options import Json, described, new_commands
from lasthop.runtime.cli.output import say, say_json
from lasthop.runtime.cli.pap_answers import report, show_result
from lasthop.runtime.cli.pap_client import Initiator
from lasthop.runtime.cli.pap_listener import PapListener
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.failure import Failure
from lasthop.runtime.units import Duration
from lasthop.wire.pap.documents import (
    CancelMessage,
    CcqMessage,
    Priority,
    PushMessage,
    QualityOfService,
    ReplaceMethod,
    ResultNotificationMessage,
    StatusQueryMessage,
)
from lasthop.wire.pap.layout import METHODS
from lasthop.wire.pap.multipart import Entity
from lasthop.wire.pap.submission import PapSubmission
from lasthop.wire.pap.times import parse_time
from lasthop.wire.pap.versions import Version

DEFAULT_URL = "http://127.0.0.1:8080/pap"

Url = Annotated[
    str, typer.Option("--url", metavar="URL", help="The address at which the gateway accepts PAP.")
]
PapVersion = Annotated[Version, typer.Option("--pap-version", help="The version of PAP to use.")]
Token = Annotated[
    str | None,
    typer.Option("--token", envvar="LASTHOP_TOKEN", help="Bearer token for the gateway."),
]
Basic = Annotated[
    str | None,
    typer.Option("--basic", metavar="NAME:PASSWORD", help="Name and password for HTTP Basic."),
]
Certificate = Annotated[
    Path | None, typer.Option(metavar="FILE", help="TLS client certificate (PEM).")
]
Key = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Key of the certificate, if it is not in the same file."),
]
Ca = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Authorities that certify the gateway (PEM).")
]
PushId = Annotated[
    str, typer.Argument(metavar="PUSH_ID", help="The id with which the push was submitted.")
]
To = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="ADDRESS", help="Only for this client address; may be repeated."),
]
Recipients = Annotated[
    list[str],
    typer.Argument(metavar="ADDRESS...", help="Client addresses, such as WAPPUSH=...@gateway."),
]
NewId = Annotated[
    str | None, typer.Option("--push-id", help="The id of the new push; generated if not given.")
]
Text = Annotated[str | None, typer.Option("--text", help="The text to push.")]
File = Annotated[
    str | None,
    typer.Option("--file", metavar="FILE", help="The file to push; - reads standard input."),
]
Kind = Annotated[
    str | None, typer.Option("--type", help="Content type of the file; text/plain for --text.")
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header", metavar="'NAME: VALUE'", help="A header of the content; may be repeated."
    ),
]
Notify = Annotated[
    str | None,
    typer.Option("--notify", metavar="URL", help="The address to which the outcome is reported."),
]
After = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Deliver not before this time: 10m, or 2030-01-01T00:00:00Z."
    ),
]
Before = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Deliver not after this time: 10m, or 2030-01-01T00:00:00Z."),
]
PriorityOf = Annotated[
    Priority, typer.Option("--priority", help="Priority among messages for the same device.")
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="How delivery is confirmed: notspecified, unconfirmed, preferconfirmed, confirmed,"
        " confirmed-with-response or oneshot.",
    ),
]
Network = Annotated[str | None, typer.Option(help="A network of WDP, such as GSM.")]
NetworkRequired = Annotated[bool, typer.Option("--network-required", help="Use no other network.")]
Bearer = Annotated[str | None, typer.Option(help="A bearer of WDP, such as SMS.")]
BearerRequired = Annotated[bool, typer.Option("--bearer-required", help="Use no other bearer.")]
Notes = Annotated[bool, typer.Option("--progress-notes", help="Ask for progress notes.")]


commands = new_commands("Submit, cancel and query pushes at any Push Proxy Gateway.")


@commands.command(
    "push",
    help=described(
        "Push content to client addresses.",
        "lasthop pap push 'WAPPUSH=alice/TYPE=USER@ppg.example.com' --text 'hello'",
        "lasthop pap push 'WAPPUSH=+15551999/TYPE=PLMN@ppg' --file si.xml --type"
        " text/vnd.wap.si --method confirmed --notify http://127.0.0.1:9000/",
    ),
)
def push(
    addresses: Recipients,
    text: Text = None,
    file: File = None,
    kind: Kind = None,
    header: Headers = None,
    push_id: NewId = None,
    notify: Notify = None,
    after: After = None,
    before: Before = None,
    priority: PriorityOf = Priority.MEDIUM,
    method: Method = "notspecified",
    network: Network = None,
    network_required: NetworkRequired = False,
    bearer: Bearer = None,
    bearer_required: BearerRequired = False,
    progress_notes: Notes = False,
    url: Url = DEFAULT_URL,
    pap_version: PapVersion = Version.V2_1,
    token: Token = None,
    basic: Basic = None,
    certificate: Certificate = None,
    key: Key = None,
    ca: Ca = None,
    as_json: Json = False,
) -> None:
    asking = _initiator(url, pap_version, token, basic, certificate, key, ca)
    quality = _quality(priority, method, network, network_required, bearer, bearer_required)
    message = _message(addresses, push_id, notify, after, before, quality, notes=progress_notes)
    report(asking.ask(message, _content(text, file, kind, header)), as_json=as_json)


@commands.command(
    "replace",
    help=described(
        "Replace an earlier push for all of its addresses, or only where it is pending.",
        "lasthop pap replace 1@shop 'WAPPUSH=alice/TYPE=USER@ppg' --text 'better' --pending-only",
    ),
)
def replace(
    old: Annotated[
        str, typer.Argument(metavar="OLD_PUSH_ID", help="The id of the push to replace.")
    ],
    addresses: Recipients,
    pending_only: Annotated[
        bool,
        typer.Option("--pending-only", help="Leave out clients that have received the old push."),
    ] = False,
    text: Text = None,
    file: File = None,
    kind: Kind = None,
    header: Headers = None,
    push_id: NewId = None,
    notify: Notify = None,
    after: After = None,
    before: Before = None,
    priority: PriorityOf = Priority.MEDIUM,
    method: Method = "notspecified",
    url: Url = DEFAULT_URL,
    pap_version: PapVersion = Version.V2_1,
    token: Token = None,
    basic: Basic = None,
    certificate: Certificate = None,
    key: Key = None,
    ca: Ca = None,
    as_json: Json = False,
) -> None:
    asking = _initiator(url, pap_version, token, basic, certificate, key, ca)
    quality = _quality(priority, method, None, False, None, False)
    how = ReplaceMethod.PENDING_ONLY if pending_only else ReplaceMethod.ALL
    message = msgspec.structs.replace(
        _message(addresses, push_id, notify, after, before, quality),
        replace_push_id=old,
        replace_method=how,
    )
    report(asking.ask(message, _content(text, file, kind, header)), as_json=as_json)


@commands.command(
    "cancel",
    help=described(
        "Cancel a push; the exit code is 0 if that succeeded for every address.",
        "lasthop pap cancel 1@shop",
        "lasthop pap cancel 1@shop --to 'WAPPUSH=alice/TYPE=USER@ppg'",
    ),
)
def cancel(
    push_id: PushId,
    to: To = None,
    url: Url = DEFAULT_URL,
    pap_version: PapVersion = Version.V2_1,
    token: Token = None,
    basic: Basic = None,
    certificate: Certificate = None,
    key: Key = None,
    ca: Ca = None,
    as_json: Json = False,
) -> None:
    asking = _initiator(url, pap_version, token, basic, certificate, key, ca)
    report(asking.ask(CancelMessage(push_id, tuple(to or ()))), as_json=as_json)


@commands.command(
    "status",
    help=described("Show what happened to a push, for each address.", "lasthop pap status 1@shop"),
)
def status(
    push_id: PushId,
    to: To = None,
    url: Url = DEFAULT_URL,
    pap_version: PapVersion = Version.V2_1,
    token: Token = None,
    basic: Basic = None,
    certificate: Certificate = None,
    key: Key = None,
    ca: Ca = None,
    as_json: Json = False,
) -> None:
    asking = _initiator(url, pap_version, token, basic, certificate, key, ca)
    report(asking.ask(StatusQueryMessage(push_id, tuple(to or ()))), as_json=as_json)


@commands.command(
    "ccq",
    help=described(
        "Print the profile (UAProf) that says what a client can do.",
        "lasthop pap ccq 'WAPPUSH=alice/TYPE=USER@ppg.example.com'",
    ),
)
def ccq(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The address of the client.")],
    query_id: Annotated[str | None, typer.Option(help="An id that the answer repeats.")] = None,
    app_id: Annotated[str | None, typer.Option(help="The application that asks.")] = None,
    url: Url = DEFAULT_URL,
    pap_version: PapVersion = Version.V2_1,
    token: Token = None,
    basic: Basic = None,
    certificate: Certificate = None,
    key: Key = None,
    ca: Ca = None,
    as_json: Json = False,
) -> None:
    asking = _initiator(url, pap_version, token, basic, certificate, key, ca)
    report(asking.ask(CcqMessage(address, query_id, app_id)), as_json=as_json)


@commands.command(
    "listen",
    help=described(
        "Receive result notifications, print and acknowledge each, until Ctrl-C.",
        "lasthop pap listen --port 9000",
    ),
)
def listen(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen at; 0 lets the system choose.")
    ] = 9000,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    count: Annotated[
        int, typer.Option(min=0, help="End after so many results; 0 means never.")
    ] = 0,
    as_json: Json = False,
) -> None:
    heard: list[str] = []

    def hear(message: ResultNotificationMessage, given: PapSubmission) -> None:
        heard.append(message.push_id)
        show_result(message, given, as_json=as_json)

    with PapListener(host, port, hear) as server:
        place = f"http://{host}:{server.server_address[1]}/"
        if as_json:
            say_json({"listening": place})
        else:
            say(f"listening at {place}")
        while not count or len(heard) < count:
            server.handle_request()


def _initiator(
    url: str,
    version: Version,
    token: str | None,
    basic: str | None,
    certificate: Path | None,
    key: Path | None,
    ca: Path | None,
) -> Initiator:
    return Initiator(
        url=url,
        version=version,
        token=token,
        basic=basic,
        certificate=certificate,
        key=key,
        ca=ca,
    )


def _message(
    addresses: list[str],
    push_id: str | None,
    notify: str | None,
    after: str | None,
    before: str | None,
    quality: QualityOfService,
    *,
    notes: bool = False,
) -> PushMessage:
    now = SystemClock().now()
    return PushMessage(
        push_id or f"{secrets.token_hex(8)}@lasthop.invalid",
        tuple(addresses),
        deliver_after=_time(after, now),
        deliver_before=_time(before, now),
        notify_to=notify,
        progress_notes=notes,
        quality=quality if quality != QualityOfService() else None,
    )


def _quality(
    priority: Priority,
    method: str,
    network: str | None,
    network_required: bool,
    bearer: str | None,
    bearer_required: bool,
) -> QualityOfService:
    if method not in METHODS:
        raise Failure(f"--method must be one of {', '.join(METHODS)}", exit_code=2)
    return QualityOfService(
        priority=priority,
        method=METHODS[method],
        network=network,
        network_required=network_required,
        bearer=bearer,
        bearer_required=bearer_required,
    )


def _content(
    text: str | None, file: str | None, kind: str | None, headers: list[str] | None
) -> Entity:
    if (text is None) == (file is None):
        raise Failure("no content to push: give --text or --file", exit_code=2)
    if text is not None:
        body, usual = text.encode(), "text/plain; charset=utf-8"
    else:
        assert file is not None
        body = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        usual = "application/octet-stream"
    pairs = [("Content-Type", kind or usual)]
    for line in headers or ():
        name, colon, value = line.partition(":")
        if not colon:
            raise Failure(f"--header must be 'NAME: VALUE', not {line!r}", exit_code=2)
        pairs.append((name.strip(), value.strip()))
    return Entity(tuple(pairs), body)


def _time(text: str | None, now: Micros) -> Micros | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        pass
    try:
        return now + Duration.parse(text)
    except (ValueError, InvalidRequest):
        raise Failure(
            f"a time must be like 10m, 2h or 2030-01-01T00:00:00Z, not {text!r}", exit_code=2
        ) from None
