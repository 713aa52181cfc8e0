"""What acts for the phone at the gateway."""

from __future__ import annotations

from lasthop.surrogate import (
    Decision,
    Lru,
    Mail,
    StaleWhileAway,
    Surrogate,
    cacheable,
)


class Album(Surrogate):
    """Spares the phone: it is asked once for what many want to know."""

    @cacheable(ttl=300, policy=StaleWhileAway(200, stale_for=86_400))
    def list(self, mail: Mail) -> Decision | None:
        """Which photos there are of a place. A list from yesterday is better than none."""
        return None

    @cacheable(policy=Lru(50))
    def photo(self, mail: Mail) -> Decision | None:
        """One photo. The phone says how long it is good for: photos do not change."""
        return None

    def from_device(self, mail: Mail) -> Decision | None:
        """A new photo makes every list of that phone old."""
        if mail.target.startswith("topic:photos."):
            self.forget("list", device=mail.device)
        return None
