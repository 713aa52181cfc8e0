"""The surrogate that acts for the phone at the gateway."""

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
    """Caches the phone's answers, so that the phone is asked once for what many viewers request."""

    @cacheable(ttl=300, policy=StaleWhileAway(200, stale_for=86_400))
    def list(self, mail: Mail) -> Decision | None:
        """Ask the phone for the photos of a place. While the phone is away, a cached list up to a
        day old is used."""
        return None

    @cacheable(policy=Lru(50))
    def photo(self, mail: Mail) -> Decision | None:
        """Ask the phone for one photo. The phone's answer says how long it may be cached."""
        return None

    def from_device(self, mail: Mail) -> Decision | None:
        """Forget the cached lists of a phone that publishes a new photo."""
        if mail.target.startswith("topic:photos."):
            self.forget("list", device=mail.device)
        return None
