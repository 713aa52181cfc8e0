"""Hypothesis strategies for every message of PAP, in every version."""

from hypothesis import strategies as st

from lasthop.clock import SECOND
from lasthop.message import DeliveryMethod
from lasthop.wire.pap.codes import CODES, MessageState
from lasthop.wire.pap.documents import (
    BadMessageResponse,
    CancelMessage,
    CancelResponse,
    CancelResult,
    CcqMessage,
    CcqResponse,
    Document,
    PapMessage,
    Priority,
    ProgressNote,
    PushMessage,
    PushResponse,
    QualityOfService,
    ReplaceMethod,
    ResponseResult,
    ResultNotificationMessage,
    ResultNotificationResponse,
    StatusQueryMessage,
    StatusQueryResponse,
    StatusQueryResult,
)
from lasthop.wire.pap.layout import METHODS_SINCE
from lasthop.wire.pap.times import EARLIEST, LATEST
from lasthop.wire.pap.versions import VERSIONS, Version

xml_characters = st.characters(
    exclude_categories=["Cs"],
    exclude_characters=[chr(n) for n in range(0x20) if n not in (9, 10, 13)] + ["\ufffe", "\uffff"],
) | st.sampled_from("\t\r\n &<>\"'")
texts = st.text(xml_characters, max_size=12)
maybe_texts = st.none() | texts
identifiers = st.text(xml_characters, min_size=1, max_size=20)
addresses = st.sampled_from(
    ["WAPPUSH=+155/TYPE=PLMN@h", "WAPPUSH=a%40b/TYPE=USER@ppg.example.net", "not an address"]
)
address_lists = st.lists(addresses, max_size=3).map(tuple)
codes = st.sampled_from(sorted(CODES)) | st.integers(1000, 9999)
seconds = st.integers(EARLIEST // SECOND, LATEST // SECOND)
times = st.none() | seconds.map(lambda second: second * SECOND)
states = st.sampled_from(MessageState)
versions = st.sampled_from(VERSIONS)


def qualities(version: Version) -> st.SearchStrategy[QualityOfService]:
    methods = [m for m in DeliveryMethod if METHODS_SINCE.get(m, Version.V1_0) <= version]
    return st.builds(
        QualityOfService,
        priority=st.sampled_from(Priority),
        method=st.sampled_from(methods),
        network=maybe_texts,
        network_required=st.booleans(),
        bearer=maybe_texts,
        bearer_required=st.booleans(),
    )


@st.composite
def push_messages(draw: st.DrawFn, version: Version) -> PushMessage:
    replaces = version >= Version.V2_0
    after, before = draw(times), draw(times)
    if after is not None and before is not None and after >= before:
        after = None
    return PushMessage(
        push_id=draw(identifiers),
        addresses=draw(st.lists(addresses, min_size=1, max_size=3).map(tuple)),
        replace_push_id=draw(st.none() | identifiers) if replaces else None,
        replace_method=draw(st.sampled_from(ReplaceMethod)) if replaces else ReplaceMethod.ALL,
        deliver_before=before,
        deliver_after=after,
        source_reference=draw(maybe_texts),
        notify_to=draw(maybe_texts),
        progress_notes=draw(st.booleans()),
        quality=draw(st.none() | qualities(version)),
    )


results = st.builds(ResponseResult, codes, maybe_texts)
notes = st.builds(ProgressNote, texts, maybe_texts, times)
cancel_results = st.builds(CancelResult, codes, maybe_texts, address_lists)


def messages(version: Version) -> st.SearchStrategy[PapMessage]:
    """Any message that this version can say."""
    maybe_quality = st.none() | qualities(version)
    status_results = st.builds(
        StatusQueryResult, states, codes, maybe_texts, times, address_lists, maybe_quality
    )
    return st.one_of(
        push_messages(version),
        st.builds(
            PushResponse,
            identifiers,
            results,
            st.lists(notes, max_size=3).map(tuple),
            maybe_texts,
            maybe_texts,
            times,
        ),
        st.builds(CancelMessage, identifiers, address_lists),
        st.builds(
            CancelResponse,
            identifiers,
            st.lists(cancel_results, min_size=1, max_size=3).map(tuple),
        ),
        st.builds(
            ResultNotificationMessage,
            identifiers,
            addresses,
            states,
            codes,
            maybe_texts,
            maybe_texts,
            maybe_texts,
            times,
            times,
            maybe_quality,
        ),
        st.builds(ResultNotificationResponse, codes, identifiers, addresses, maybe_texts),
        st.builds(StatusQueryMessage, identifiers, address_lists),
        st.builds(
            StatusQueryResponse,
            identifiers,
            st.lists(status_results, min_size=1, max_size=3).map(tuple),
        ),
        st.builds(CcqMessage, addresses, maybe_texts, maybe_texts),
        st.builds(CcqResponse, addresses, codes, maybe_texts, maybe_texts),
        st.builds(BadMessageResponse, codes, maybe_texts, maybe_texts),
    )


@st.composite
def documents(draw: st.DrawFn) -> Document:
    version = draw(versions)
    offers = st.lists(st.sampled_from(["2.2", "2.1", "1.*", "3.0"]), max_size=4).map(tuple)
    return Document(
        draw(messages(version)),
        version,
        draw(offers) if version is not Version.V1_0 else (),
        draw(maybe_texts),
    )
