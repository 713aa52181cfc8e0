"""Two ends of a Xebu session, and policies that a test can draw."""

import random
from collections.abc import Sequence

from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xebu.layout import TOKENS
from lasthop_xml.xebu.policies import Policy


class Anyhow(Policy):
    """Replaces at random, and soon: few tokens make many replacements."""

    __slots__ = ("_random", "_tokens")

    def __init__(self, seed: int, tokens: int) -> None:
        self._random = random.Random(seed)
        self._tokens = tokens
        self.used = self._ignored

    def _ignored(self, token: int) -> None:
        assert 0 <= token < TOKENS

    def choose(self) -> int:
        return self._random.randrange(self._tokens)

    def state(self) -> list[list[int]]:
        return []

    def restore(self, state: Sequence[Sequence[int]]) -> None:
        assert not state


def passed(encoder: Encoder, decoder: Decoder, events: EventSequence) -> EventList:
    """The events at the other end."""
    return decoder.decode(encoder.encode(events))


def in_step(encoder: Encoder, decoder: Decoder) -> bool:
    """Whether both ends have the same tokens for the same strings."""
    ours, theirs = encoder.tables, decoder.tables
    return (
        ours.namespaces.keys == theirs.namespaces
        and ours.names.keys == theirs.names
        and ours.values.keys == theirs.values
        and ours.texts.keys == [event and event.value for event in theirs.texts]
        and (encoder.epoch, encoder.messages) == (decoder.epoch, decoder.messages)
    )
