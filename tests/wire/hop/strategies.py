"""Hypothesis strategies for every frame of the hop protocol."""

from typing import Any

from hypothesis import strategies as st

from lasthop.message import Handling, Reliability
from lasthop.wire.hop.frames import (
    MIN_MAX_FRAME,
    Ack,
    Close,
    Credit,
    Dropped,
    Ending,
    EndStatus,
    Frame,
    Headers,
    Hello,
    LaneClaim,
    LaneClaims,
    LaneFrame,
    Last,
    MessageFrame,
    OtherWays,
    Piece,
    Ping,
    Pong,
    Ranges,
    Skip,
    Taken,
    Time,
    Wanted,
    Welcome,
)

counts = st.integers(0, 2**40) | st.integers(0, 300)
numbers = st.integers(0, 2**63 - 1) | st.integers(0, 300)
texts = st.text(max_size=20)
maybe_texts = st.none() | texts
incarnations = st.binary(min_size=8, max_size=8)


@st.composite
def ranges_above(draw: st.DrawFn, received: int, *, least: int = 0) -> Ranges:
    """Ranges that ascend from above `received`, with gaps between them."""
    pairs = st.tuples(st.integers(1, 300), st.integers(1, 300))
    ranges = []
    at = received
    for gap, run in draw(st.lists(pairs, min_size=least, max_size=5)):
        ranges.append((at + gap, at + gap + run))
        at += gap + run
    return tuple(ranges)


@st.composite
def acks(draw: st.DrawFn) -> Ack:
    received = draw(counts)
    return Ack(received, draw(st.integers(0, received)), draw(ranges_above(received)))


@st.composite
def hellos(draw: st.DrawFn) -> Hello:
    claims: dict[str, Any] = {}
    if draw(st.booleans()):
        received = draw(counts)
        claims = {
            "incarnation": draw(incarnations),
            "epoch": draw(counts),
            "received": received,
            "delivered": draw(st.integers(0, received)),
            "individual": draw(ranges_above(received)),
            "dropped": draw(ranges_above(-1)),
        }
    return Hello(app=draw(texts), device=draw(texts), **claims, **draw(_terms()), **draw(_device()))


@st.composite
def welcomes(draw: st.DrawFn) -> Welcome:
    received = draw(counts)
    return Welcome(
        incarnation=draw(incarnations),
        epoch=draw(counts),
        resumed=draw(st.booleans()),
        superseded=draw(st.none() | counts),
        received=received,
        individual=draw(ranges_above(received)),
        closed=draw(counts),
        peer_time=draw(st.none() | counts),
        **draw(_terms()),
    )


def _terms() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "features": st.integers(0, 7),
            "accept": st.lists(texts, max_size=3).map(tuple),
            "time": counts,
            "window": credits_,
            "preserve": counts,
            "max_frame": st.integers(MIN_MAX_FRAME, 2**40),
            "heartbeat": counts,
        },
    )


def _device() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "token": texts,
            "link": texts,
            "network": texts,
            "assigned": counts,
            "storage": counts,
        },
    )


headers = st.builds(
    Headers,
    content_type=maybe_texts,
    priority=st.integers(0, 9),
    deliver_within=st.none() | counts,
    in_reply_to=st.none() | numbers,
    reply_within=st.none() | counts,
    operation=st.integers(0, 255),
    handling=st.sampled_from(Handling),
    reliability=st.sampled_from(Reliability),
    title=maybe_texts,
    rank=st.floats(allow_nan=False, allow_infinity=False),
    source=maybe_texts,
    to=maybe_texts,
    redelivered=st.booleans(),
    extra=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    queue=maybe_texts,
    correlation=st.none() | numbers,
    keep=st.booleans(),
    ahead=st.none() | counts,
    pull=st.none() | counts,
    stream=st.booleans(),
    tolerance=st.none() | counts,
).map(lambda made: made if made != Headers() else Headers(priority=1))

topics = st.sampled_from(["news", "news/local", "t"]) | texts

messages = st.builds(
    MessageFrame,
    seq=st.none() | counts,
    key=st.none() | numbers,
    topic=st.none() | topics,
    headers=st.none() | headers,
    body=st.binary(max_size=300),
)

runs_of_messages = st.lists(
    st.builds(
        MessageFrame,
        seq=st.integers(0, 8),
        key=st.integers(0, 3).map(lambda low: low << 22 | low) | numbers,
        topic=st.none() | topics,
        headers=st.none() | headers,
        body=st.binary(max_size=40),
    ),
    max_size=20,
)
"""Messages that lie close together, so that every shorthand is used."""

credits_ = st.builds(Credit, counts, counts)
skips = st.builds(Skip, counts, st.integers(1, 2**40))
dropped = ranges_above(-1, least=1).map(Dropped)
times = st.builds(Time, counts, counts)
other_ways = st.lists(st.tuples(texts, st.text(min_size=1, max_size=20)), max_size=16).map(
    lambda ways: OtherWays(tuple(ways))
)
wanted = st.lists(texts, min_size=1, max_size=5).map(lambda links: Wanted(tuple(links)))
closes = st.builds(Close, st.integers(0, 300), counts, texts)
pieces = st.builds(Piece, numbers, counts, st.binary(max_size=300), st.booleans())
taken = st.tuples(numbers, counts, counts).map(lambda t: Taken(t[0], t[1], t[1] + t[2]))
endings = st.builds(
    Ending,
    numbers,
    st.sampled_from(EndStatus),
    counts,
    st.integers(0, 2**32 - 1),
    texts,
    st.booleans(),
)
heartbeats = st.sampled_from([Ping(), Pong()])

payload: st.SearchStrategy[Frame] = st.one_of(
    messages,
    acks(),
    skips,
    dropped,
    credits_,
    times,
    other_ways,
    wanted,
    heartbeats,
    pieces,
    taken,
    endings,
)
"""Everything that an open channel carries, except its end."""

lanes = st.integers(2, 9) | st.integers(2, 2**40)
"""Identifiers of lanes beside lane 0."""


@st.composite
def lane_frames(draw: st.DrawFn) -> LaneFrame:
    """A frame about a lane; only a lane without order has numbers finished beyond a gap."""
    lane = draw(lanes)
    ack = draw(acks())
    if lane & 1:
        ack = Ack(ack.received, ack.delivered, ack.individual, draw(ranges_above(ack.delivered)))
    lasts = counts.map(Last)
    return LaneFrame(lane, draw(st.just(ack) | skips | dropped | credits_ | lasts))


@st.composite
def claims_of_lanes(draw: st.DrawFn, *, delivered: bool) -> LaneClaims:
    """What a side says that it has of the other side's lanes."""
    claims = []
    for number in sorted(draw(st.sets(st.integers(1, 200), max_size=6))):
        lane = 2 * number + draw(st.integers(0, 1))
        received = draw(counts)
        done = draw(st.integers(0, received)) if delivered else 0
        ahead = draw(ranges_above(received))
        finished = draw(ranges_above(done if delivered else received)) if lane & 1 else ()
        claims.append(LaneClaim(lane, received, done, ahead, finished))
    return LaneClaims(draw(st.integers(201, 300)), tuple(claims))


messages_in_lanes = st.builds(
    MessageFrame,
    seq=st.integers(0, 4) | counts,
    key=st.none() | st.integers(0, 6) | numbers,
    topic=st.none() | topics,
    headers=st.none() | headers,
    body=st.binary(max_size=40),
    lane=st.sampled_from([0, 2, 3, 4]) | lanes,
)
