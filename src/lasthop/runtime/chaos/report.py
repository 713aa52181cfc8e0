"""What `lasthop chaos` says at the end."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class ChaosReport(msgspec.Struct, kw_only=True):
    """The result of a run. Messages are counted once for each device that they are for."""

    seed: int
    seconds: float
    accepted: int
    delivered: int
    refused: int
    lost: int
    duplicated: int
    misordered: int
    untrue: int
    stuck: int
    kills: int
    faults: int
    kinds: dict[str, int]
    """The number of faults of each kind."""
    ended: list[str]
    """Processes that ended though nobody had ended them, and their last words."""
    max_rss_mb: float
    """The most memory of the gateway."""
    not_done: dict[str, str]
    """Faults and parties that this run could not have, and why."""
    findings: list[str]
    """The first broken promises, one line for each."""

    @property
    def good(self) -> bool:
        return not (self.lost or self.duplicated or self.misordered or self.untrue or self.stuck)


def lines(report: ChaosReport) -> Iterator[str]:
    """Yield the lines of the report that people read."""
    yield f"{report.accepted} accepted, {report.delivered} delivered, {report.refused} refused"
    yield (
        f"lost {report.lost}, duplicated {report.duplicated}, misordered {report.misordered},"
        f" untrue {report.untrue}, stuck {report.stuck}"
    )
    kinds = ", ".join(f"{name} {count}" for name, count in report.kinds.items())
    yield f"{report.faults} faults in {report.seconds:g} s: {kinds}"
    yield f"the gateway used at most {report.max_rss_mb:g} MB; seed {report.seed}"
    for name, why in report.not_done.items():
        yield f"not done: {name}: {why}"
    for said in report.ended:
        yield f"ended by itself: {said}"
    yield from report.findings
