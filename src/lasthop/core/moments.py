"""Which features take part in which moment, collected once at the start: a feature that does not
override a moment costs nothing there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.effects import CloseChannel
from lasthop.core.feature import Arrival, CoreFeature, Operate, TargetRule, Word
from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.session import Session
from lasthop.message import Message, TargetKind
from lasthop.store.commit import DeliveryRow, Restored
from lasthop.wire.hop.frames import Frame, Hello


class Moments:
    """The methods of all features by moment, each list in the order of the features."""

    check: tuple[Callable[[Submission], None], ...] = ()
    admit: tuple[Callable[[str, str, Sequence[Submission]], None], ...] = ()
    capacity: tuple[Callable[[str], int], ...] = ()
    owned: tuple[Callable[[Item], None], ...] = ()
    accepted: tuple[Callable[[Message, Micros], bool], ...] = ()
    withdrawn: tuple[Callable[[str, int, Micros], None], ...] = ()
    take_back: tuple[Callable[[str, int, Micros], tuple[int, int] | None], ...] = ()
    recall: tuple[Callable[[Delivery, Micros], bool], ...] = ()
    replied: tuple[Callable[[int, int, int], None], ...] = ()
    intake: tuple[Callable[[Arrival, Micros], bool], ...] = ()

    check_device: tuple[Callable[[str, DeviceRecord, Device | None], None], ...] = ()
    opened: tuple[Callable[[Session], None], ...] = ()
    meeting: tuple[Callable[[Session, int, Hello, Micros], CloseChannel | None], ...] = ()
    introduced: tuple[Callable[..., None], ...] = ()
    greeted: tuple[Callable[..., None], ...] = ()
    channel_gone: tuple[Callable[[Session], None], ...] = ()
    away: tuple[Callable[[Session, Micros], None], ...] = ()
    amended: tuple[Callable[[Session, Mapping[str, object], Micros], None], ...] = ()
    removed: tuple[Callable[[Session, Micros], None], ...] = ()
    forgotten: tuple[Callable[[Session], None], ...] = ()

    turned: tuple[Callable[[], None], ...] = ()
    settle: tuple[Callable[[Micros], None], ...] = ()
    after_settling: tuple[Callable[[Micros], None], ...] = ()
    proceed: tuple[Callable[[Micros], None], ...] = ()
    before_commit: tuple[Callable[[], None], ...] = ()
    wake: tuple[Callable[[Micros], None], ...] = ()
    next_due: tuple[Callable[[], Micros | None], ...] = ()
    fetched: tuple[Callable[[Mapping[int, Message], Micros], None], ...] = ()

    recalled: tuple[Callable[[int, Mapping[int, Message], Collection[int], Micros], None], ...] = ()

    restore: tuple[Callable[[Restored, Micros], None], ...] = ()
    attach: tuple[Callable[..., None], ...] = ()
    reopening: tuple[Callable[[Delivery, DeliveryRow], None], ...] = ()
    finish: tuple[Callable[[Micros], None], ...] = ()

    def __init__(self) -> None:
        self.targets: dict[TargetKind, TargetRule] = {}
        self.words: dict[str, Word] = {}
        self.operations: dict[int, Operate] = {}
        self.frames: dict[type[Frame], Callable[[Session, Frame, Micros], None]] = {}

    def collect(self, features: Sequence[CoreFeature]) -> None:
        """Register these features for the moments that they handle; they are called in this
        order."""
        for name in MOMENTS:
            setattr(self, name, tuple(_taking_part(features, name)))
        for feature in features:
            _fill(self.targets, feature.targets())
            _fill(self.words, feature.words())
            _fill(self.operations, feature.operations())
            _fill(self.frames, feature.frames())


MOMENTS = tuple(name for name in Moments.__annotations__ if hasattr(CoreFeature, name))


def _taking_part(features: Sequence[CoreFeature], name: str) -> list[Callable[..., Any]]:
    base = getattr(CoreFeature, name)
    return [getattr(f, name) for f in features if getattr(type(f), name) is not base]


def _fill(table: dict[Any, Any], rows: Mapping[Any, Any]) -> None:
    """Add a feature's rows to a table; two features with the same key would both decide."""
    for key, row in rows.items():
        assert key not in table, f"two features claim {key!r}"
        table[key] = row
