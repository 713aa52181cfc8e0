"""The alternatives to our codecs: general compressors, and the same data in other notations."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

import cbor2
import zstandard

from bench.data.xml_events.generate import messages
from bench.xml.ours import TRAINING_MESSAGES, TRAINING_SEED, Messages

DICTIONARY = 16 * 1024
"""Bytes of a trained dictionary: what the manual of zstd recommends for messages of a few kB."""

Compressor: TypeAlias = Callable[[Sequence[bytes]], int]
"""A function from the messages of a connection to the bytes that they take, all together."""


def _gzip(sent: Sequence[bytes]) -> int:
    return sum(len(gzip.compress(each, mtime=0)) for each in sent)


def _deflate_context(sent: Sequence[bytes]) -> int:
    context = zlib.compressobj(9, zlib.DEFLATED, -15)
    # The last four bytes of a flush are always the same, and senders leave them out.
    return sum(
        len(context.compress(each)) + len(context.flush(zlib.Z_SYNC_FLUSH)) - 4 for each in sent
    )


def _zstd(sent: Sequence[bytes]) -> int:
    compressor = zstandard.ZstdCompressor(level=3, write_content_size=False)
    return sum(len(compressor.compress(each)) for each in sent)


def _zstd_context(level: int) -> Compressor:
    def compressed(sent: Sequence[bytes]) -> int:
        context = zstandard.ZstdCompressor(level=level, write_content_size=False).compressobj()
        flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        return sum(len(context.compress(each)) + len(context.flush(flush)) for each in sent)

    return compressed


COMPRESSORS: dict[str, Compressor] = {
    "raw": lambda sent: sum(map(len, sent)),
    "gzip": _gzip,
    "zstd-3": _zstd,
    "deflate ctx": _deflate_context,
    "zstd-3 ctx": _zstd_context(3),
    "zstd-19 ctx": _zstd_context(19),
}
"""Each message compressed by itself, or (ctx) with one compressor for the connection, flushed after
each message. Level 19 takes milliseconds a message: a bound, hardly a choice."""


@cache
def _dictionary() -> zstandard.ZstdCompressionDict:
    samples = messages(TRAINING_SEED, TRAINING_MESSAGES)
    return zstandard.train_dictionary(DICTIONARY, [*samples])


def with_dictionary(documents: Sequence[bytes]) -> Messages:
    """Compress each message by itself with a dictionary that zstd has learned from messages not
    measured."""
    compressor = zstandard.ZstdCompressor(
        level=19, dict_data=_dictionary(), write_content_size=False, write_dict_id=False
    )
    return [compressor.compress(each) for each in documents]


def same_in_json(folder: Path) -> list[object] | None:
    """Return the content of a folder's messages from the JSON file beside them; None if there is
    none."""
    for place in (folder, folder.parent):
        file = place / "messages.jsonl"
        if file.is_file():
            return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return None


def as_json(said: Sequence[object]) -> Messages:
    return [json.dumps(each, separators=(",", ":"), ensure_ascii=False).encode() for each in said]


def as_cbor(said: Sequence[object]) -> Messages:
    return [cbor2.dumps(each) for each in said]
