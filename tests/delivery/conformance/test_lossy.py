"""Over a channel that says that it loses things, everything arrives once and in order.

About `core/contacts/retransmission.py` and `delivery/channel.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lasthop.transport.schemes import SCHEMES
from tests.delivery.conformance import lossy
from tests.delivery.conformance.house import WatchedChannel, housed
from tests.delivery.conformance.kinds import KINDS
from tests.delivery.conformance.test_sessions import in_contact
from tests.transport.certificates import Authority

pytestmark = pytest.mark.anyio


async def test_what_is_lost_on_a_lossy_channel_is_sent_again(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCHEMES, "lossy", lossy.SCHEME)
    async with (
        housed(authority, tmp_path, KINDS[0]) as house,
        lossy.listening(house, house.clock, tmp_path) as url,
    ):
        house.urls["lossy"] = url
        async with in_contact(house, "lossy") as traffic:
            (channel,) = (link for link in house.channels if isinstance(link, lossy.LossyLink))
            assert isinstance(house.channels[channel], WatchedChannel)
            assert not house.channels[channel].reliable
            for _ in range(5):
                await traffic.some(5)
                await traffic.arrived()
            assert channel.lost_units > 0
            assert max(house.times_sent.values()) > 1
