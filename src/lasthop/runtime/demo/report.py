"""The demo's report: one structure for programs, a page of text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lasthop.runtime.demo.ledger import Exactly, Looks
from lasthop.runtime.demo.waste import HopWaste


class DemoLatency(msgspec.Struct):
    """Milliseconds from a publisher's call until the application had the message."""

    p50: float
    p95: float
    p99: float
    longest: float


def latency(seconds: Sequence[float]) -> DemoLatency | None:
    """Return the percentiles of latencies given in seconds; None if there are none."""
    if not seconds:
        return None
    ordered = sorted(seconds)

    def at(percent: int) -> float:
        place = -(-percent * len(ordered) // 100) - 1
        return round(ordered[place] * 1000, 1)

    return DemoLatency(at(50), at(95), at(99), at(100))


class LinkReport(msgspec.Struct):
    """The figures of all devices on one kind of link."""

    devices: int
    away: float
    """The share of the time in which the link has an outage, according to its profile."""
    delivered: int
    latency: DemoLatency | None
    resets: int
    """The number of connections that outages broke."""
    bytes: int
    """The bytes on the links, both ways, without the headers of TCP and IP."""
    bytes_per_message: float | None
    """The number of bytes on the links for each message that an application has seen."""


class DemoPeriod(msgspec.Struct):
    """The figures of one run of the script."""

    seconds: float
    """The length in seconds of the part of the run whose messages are counted."""
    forwarded: int
    wasted: int
    read_online: int
    lost: int
    waste: float | None
    loss: float | None
    bytes_per_second: float
    """The number of bytes per second on all links together, on average over the whole run."""


class LearningReport(msgspec.Struct, omit_defaults=True):
    """What the pipeline has learned, or the reason why it has learned nothing."""

    ran: bool
    reason: str = ""
    version: str = ""
    devices: int = 0
    events: int = 0
    seconds: float = 0.0


class DemoReport(msgspec.Struct):
    """Everything that the demo reports, preliminarily or at its end."""

    complete: bool
    """Whether the report is final; otherwise the comparison is still to come."""
    seconds: float
    devices: int
    good: bool
    """Whether the gateway has broken no promise."""
    lost: int
    """The number of accepted messages that no application saw, although the gateway considers their
    delivery ended."""
    under_way: int
    """The number of accepted messages that no application has seen yet and the gateway still
    has."""
    messages: Exactly
    looks: Looks
    latency: DemoLatency | None
    links: dict[str, LinkReport]
    bytes_per_message: float | None
    payload_per_message: int
    learning: LearningReport
    before: DemoPeriod | None
    after: DemoPeriod | None


def period(hop: HopWaste, seconds: float, bytes_per_second: float) -> DemoPeriod:
    """Return the figures of a run, from its counts."""
    return DemoPeriod(
        seconds=round(seconds, 1),
        forwarded=hop.forwarded,
        wasted=hop.wasted,
        read_online=hop.read_online,
        lost=hop.lost,
        waste=_rounded(hop.waste),
        loss=_rounded(hop.loss),
        bytes_per_second=round(bytes_per_second, 1),
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def rest(report: DemoReport) -> Iterator[str]:
    """Yield the lines of a final report for people who have read the preliminary one."""
    yield f"After {report.seconds:.0f} s, the rest of the report:"
    yield ""
    yield from _exactly(report)
    yield ""
    yield from _learning(report)


def lines(report: DemoReport) -> Iterator[str]:
    """Yield the lines of a report for people."""
    looks = report.looks
    yield f"After {report.seconds:.0f} s with {report.devices} devices:"
    yield ""
    yield from _exactly(report)
    wrong = looks.again + looks.unsorted + looks.too_many + looks.too_low
    yield (
        f"  ranked topics            {looks.shown} messages shown in {looks.looks} looks,"
        f" {wrong} against the rules"
    )
    yield f"  latency                  {_latency(report.latency)}"
    yield (
        f"  bytes per message        {_number(report.bytes_per_message)} on the links,"
        f" of which {report.payload_per_message} are content"
    )
    yield ""
    yield (
        f"  {'link':12}{'devices':>8}{'away':>7}{'delivered':>11}{'breaks':>8}"
        f"{'bytes/message':>15}   latency"
    )
    for name, link in report.links.items():
        yield (
            f"  {name:12}{link.devices:>8}{link.away:>7.0%}{link.delivered:>11}{link.resets:>8}"
            f"{_number(link.bytes_per_message):>15}   {_latency(link.latency)}"
        )
    yield ""
    yield from _learning(report)


def _exactly(report: DemoReport) -> Iterator[str]:
    sent = report.messages
    yield (
        f"  exactly once, in order   {sent.accepted} accepted, {sent.delivered} delivered,"
        f" {report.lost} lost, {sent.duplicated} duplicated, {sent.misordered} misordered"
    )
    if report.under_way or sent.refused or sent.uncertain:
        yield (
            f"{'':27}{report.under_way} under way, {sent.refused} refused,"
            f" {sent.uncertain} without an answer"
        )


def _learning(report: DemoReport) -> Iterator[str]:
    learning = report.learning
    if not report.complete and not learning.ran:
        yield "  still learning"
    elif learning.ran:
        yield (
            f"  {learning.devices} choices learned from {learning.events} events in"
            f" {learning.seconds:.0f} s: {learning.version}"
        )
    else:
        yield f"  nothing was learned: {learning.reason}"
    shown = [
        ("before" if learning.ran or not report.complete else "played", report.before),
        ("after", report.after),
    ]
    for name, found in shown:
        if found is not None:
            yield (
                f"  {name:8} waste {_share(found.waste)} of {found.forwarded} forwarded,"
                f" loss {_share(found.loss)} of {found.read_online} that could be read,"
                f" {found.bytes_per_second:.0f} bytes/s"
            )
    if not report.complete:
        yield "  The comparison follows when the same has been played with what was learned."
    elif report.after is not None:
        yield "  The same messages, looks and outages were played before and after."
        yield "  The difference is between policies; what they do untaught: lasthop bench loop."
    elif learning.ran:
        yield f"  no comparison: {learning.reason}"


def _latency(found: DemoLatency | None) -> str:
    if found is None:
        return "nothing was delivered"
    return (
        f"median {found.p50:.0f} ms, p95 {found.p95:.0f} ms, p99 {found.p99:.0f} ms,"
        f" longest {found.longest:.0f} ms"
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"
