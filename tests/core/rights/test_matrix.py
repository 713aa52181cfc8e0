"""Every operation of the hop protocol, times every kind of caller: the expected cells are in
`matrix.txt`, written by hand. The HTTP doors are in `tests/runtime/test_matrix.py`."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from lasthop.core.registry import DeviceRecord, hash_token
from lasthop.core.rights.rule import OF_DEVICES, AccessRule, Verb
from lasthop.message import Binding, Target, TargetKind
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    ERROR_TYPE,
    CloseCode,
    Headers,
    Hello,
    MessageFrame,
    Operation,
)
from lasthop.wire.hop.services import Service, encode
from tests.core.rig import APP, Rig, publication, to

TABLE = Path(__file__).with_name("matrix.txt")

RULES = (
    AccessRule(name="allowed", who=("device:allowed", "device:denied"), allow=OF_DEVICES),
    AccessRule(name="denied", who=("device:denied",), deny=OF_DEVICES),
    AccessRule(name="mail", who=("user:anna",), allow=(Verb.SEND,), on=("user:anna",)),
    AccessRule(
        name="hers", who=("user:anna",), allow=(Verb.SUBSCRIBE,), on=("topic:home.{user}.#",)
    ),
)

CALLERS: dict[str, Hello] = {
    "unknown": Hello(app=APP, device="unknown", token="secret"),
    "tokenless": Hello(app=APP, device="allowed"),
    "publisher": Hello(app=APP, device="allowed", token="publishers"),
    "other_app": Hello(app=APP, device="allowed", token="others"),
    "bare": Hello(app=APP, device="bare", token="secret"),
    "allowed": Hello(app=APP, device="allowed", token="secret"),
    "denied": Hello(app=APP, device="denied", token="secret"),
    "hers": Hello(app=APP, device="hers", token="secret"),
}
"""How each caller introduces itself from another machine. `publisher` shows a publisher's token,
`other_app` the token of the device of the same name in another app, `hers` belongs to anna."""

DATA = {
    "topic": MessageFrame(0, 77, "news", Headers(), b"x"),
    "app": publication(0, target="app:"),
    "device": publication(0, target="device:allowed"),
    "user": publication(0, target="user:anna"),
    "group": publication(0, target="group:team"),
    "queue": publication(0, target="queue:jobs"),
    "service": publication(0, target="service:print"),
    "stream": publication(0, target="device:allowed", stream=True),
}


def asked(row: str, claimable: int) -> MessageFrame:
    """What a device sends for a row."""
    name, _, about = row.partition(" ")
    operation = Operation[name]
    if operation is Operation.DATA:
        return DATA[about]
    headers = Headers(operation=operation, in_reply_to=claimable)
    topic, body = None, b"{}"
    if operation is Operation.REPLY and about == "device":
        headers = Headers(operation=operation, in_reply_to=5, to="device:allowed")
    elif operation in (Operation.SUBSCRIBE, Operation.UNSUBSCRIBE):
        topic = {"everything": "#", "own": "home.anna.#"}.get(about, "news")
        body = b""
    elif operation in (Operation.JOIN, Operation.LEAVE):
        name = {"queue": "queue:jobs"}.get(about, "group:crew")
        headers = Headers(operation=operation, to=name)
    elif operation is Operation.OFFER:
        body = encode(Service("print"))
    return MessageFrame(0, 77, topic, headers, body)


def read_table() -> dict[str, dict[str, str]]:
    lines = [s for s in TABLE.read_text().splitlines() if s and not s.startswith("#")]
    columns = lines[0].split()[1:]
    assert columns == list(CALLERS)
    rows: dict[str, dict[str, str]] = {}
    for line in lines[1:]:
        words = line.split()
        name = " ".join(words[: -len(columns)])
        rows[name] = dict(zip(columns, words[-len(columns) :], strict=True))
    return rows


MATRIX = read_table()


def cell(row: str, caller: str) -> str:
    """What becomes of a caller's operation, on a gateway that gives least."""
    rig = Rig(least=True, rules=RULES)
    admin = rig.gateway.admin
    for name in ("bare", "allowed", "denied", "hers"):
        user = "anna" if name == "hers" else ""
        record = DeviceRecord(token_hash=hash_token("secret"), user=user)
        admin.register(APP, name, record, rig.now)
        rig.gateway.groups.join(APP, name, Target(TargetKind.GROUP, "team"), rig.now)
    other = DeviceRecord(token_hash=hash_token("others"))
    admin.register("other", "allowed", other, rig.now)
    admin.admit("publishers", APP, "shop", set(), rig.now)
    (claimable,) = rig.publish(to("group:team", binding=Binding.CLAIM))
    rig.run()
    hello = CALLERS[caller]
    hello = msgspec.structs.replace(hello, features=int(ALL_FEATURES))
    rig.gateway.channel_opened(1)
    rig.gateway.frames_received(1, [hello], rig.now, local=False)
    rig.run()
    if rig.disconnected:
        assert rig.disconnected[0].code in (CloseCode.UNAUTHORIZED, CloseCode.UNKNOWN_DEVICE)
        return "closed"
    rig.hear(1, asked(row, claimable))
    for frame in rig.messages(1):
        if frame.headers is not None and frame.headers.content_type == ERROR_TYPE:
            code: str = json.loads(frame.body)["code"]
            return code if code == "no_right" else "in"
    return "in"


def test_every_operation_has_a_row() -> None:
    assert {name.split()[0] for name in MATRIX} == set(Operation.__members__)
    data = {name.partition(" ")[2] for name in MATRIX if name.startswith("DATA")}
    assert data - {"stream"} == set(TargetKind) - {TargetKind.PUSH, TargetKind.PUBLISHER}
    print(f"{sum(map(len, MATRIX.values()))} cells in {len(MATRIX)} rows")


@pytest.mark.parametrize("row", MATRIX)
def test_every_caller_may_do_what_the_table_says(row: str) -> None:
    assert {caller: cell(row, caller) for caller in CALLERS} == MATRIX[row]
