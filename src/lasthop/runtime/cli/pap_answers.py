"""Prints what a Push Proxy Gateway answered, for people and for machines."""

from __future__ import annotations

from typing import Any

import msgspec
import typer

from lasthop.clock import Micros
from lasthop.runtime.cli.output import say, say_json
from lasthop.wire.pap.codes import look_up
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    CancelResponse,
    CcqResponse,
    PapMessage,
    PushResponse,
    ResultNotificationMessage,
    StatusQueryResponse,
)
from lasthop.wire.pap.submission import PapSubmission
from lasthop.wire.pap.times import format_time


def report(answer: PapSubmission, *, as_json: bool) -> None:
    """Print an answer; exit with code 0 only if every part of it reports success."""
    message = answer.document.message
    if as_json:
        say_json(_plain(answer))
    else:
        _show(message, answer)
    if not all(code // 1000 == 1 for code in _codes(message)):
        raise typer.Exit(1)


def _plain(answer: PapSubmission) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": type(answer.document.message).__name__}
    plain |= msgspec.to_builtins(answer.document.message)
    plain["version"] = str(answer.document.version)
    if answer.content is not None:
        plain["content"] = answer.content.body.decode("utf-8", "replace")
        plain["content_type"] = answer.content.content_type
    return plain


def _codes(message: PapMessage) -> list[int]:
    match message:
        case PushResponse():
            return [message.result.code]
        case CancelResponse() | StatusQueryResponse():
            unknown = [r.code for r in message.results if getattr(r, "state", None) == "unknown"]
            if isinstance(message, StatusQueryResponse):
                return unknown or [1000]
            return [result.code for result in message.results]
        case CcqResponse() | BadMessageResponse():
            return [message.code]
        case _:
            return [3000]


def _show(message: PapMessage, answer: PapSubmission) -> None:
    match message:
        case PushResponse():
            for note in message.progress:
                say(f"{_when(note.time)}  {note.stage}  {note.note or ''}".rstrip())
            say(f"{_said(message.result.code, message.result.desc)}  {message.push_id}")
        case CancelResponse():
            rows = [[a, _said(r.code, r.desc)] for r in message.results for a in _each(r.addresses)]
            _columns(rows)
        case StatusQueryResponse():
            _columns(
                [
                    [a, r.state, _said(r.code, r.desc), _when(r.event_time)]
                    for r in message.results
                    for a in _each(r.addresses)
                ]
            )
        case CcqResponse():
            if answer.content is not None:
                say(answer.content.body.decode("utf-8", "replace").rstrip())
            else:
                say(_said(message.code, message.desc))
        case BadMessageResponse():
            say(_said(message.code, message.desc))
        case _:
            say(f"the gateway sent an unexpected answer: {type(message).__name__}")


def _columns(rows: list[list[str]]) -> None:
    """Print rows in columns with whole addresses, whatever the terminal's width: people copy
    them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())


def _each(addresses: tuple[str, ...]) -> tuple[str, ...]:
    return addresses or ("(all)",)


def show_result(message: ResultNotificationMessage, given: PapSubmission, *, as_json: bool) -> None:
    """Print a result notification and what was received with it."""
    if as_json:
        say_json(_plain(given))
        return
    said = _said(message.code, message.desc)
    line = f"{message.push_id}  {message.address}  {message.state}  {said}"
    say(f"{line}  {_when(message.event_time)}".rstrip())
    if given.content is not None:
        say(given.content.body.decode("utf-8", "replace"))


def _said(code: int, desc: str | None) -> str:
    known = look_up(code)
    return f"{code} {desc or (known.name if known is not None else '')}".rstrip()


def _when(time: Micros | None) -> str:
    return "" if time is None else format_time(time)
