"""Documents for Hypothesis: valid ones of every language, and any that can be encoded."""

from datetime import datetime

from hypothesis import strategies as st

from lasthop.wire.wbxml.document import WbxmlDocument, WbxmlElement
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import CO, EMN, LANGUAGES, SI, SL

characters = st.characters(
    codec="utf-8",
    exclude_categories=("Cc", "Cs"),
    include_characters="\t\n\r",
    exclude_characters="\ufffe\uffff",
)
texts = st.text(characters, max_size=40)

uris = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(
        ["", "http://", "http://www.", "https://", "https://www.", "mailat:", "pop://", "imap://"]
    ),
    st.text("abc.é", max_size=8),
    st.sampled_from(["", ".com/", ".edu/", ".net/", ".org/", ".com", ".org/.com/"]),
    texts,
)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds") + "Z"


dates = st.one_of(
    st.datetimes(min_value=datetime(1, 1, 1)).map(_iso),  # noqa: DTZ001
    st.dates().map(lambda day: f"{day.isoformat()}T00:00:00Z"),
)


def _element(
    tag: str, attributes: dict[str, st.SearchStrategy[str]], optional: bool = True
) -> st.SearchStrategy[WbxmlElement]:
    values = st.fixed_dictionaries({}, optional=attributes)
    if not optional:
        values = st.fixed_dictionaries(attributes)
    return st.builds(WbxmlElement, st.just(tag), values)


def _choices(language: Language, tag: str) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(language.models[tag].choices["action"]))


def _with_text(element: WbxmlElement, text: str) -> WbxmlElement:
    return WbxmlElement(element.tag, element.attributes, (text,) if text else ())


def _indication(element: WbxmlElement, identity: str, text: str) -> WbxmlElement:
    attributes = dict(element.attributes)
    if attributes.get("action") == "delete":
        attributes.setdefault("si-id", identity)
    return WbxmlElement(element.tag, attributes, (text,) if text else ())


def _si() -> st.SearchStrategy[WbxmlElement]:
    indication = st.builds(
        _indication,
        _element(
            "indication",
            {
                "href": uris,
                "si-id": texts.filter(bool),
                "created": dates,
                "si-expires": dates,
                "action": _choices(SI, "indication"),
            },
        ),
        texts.filter(bool),
        texts,
    )
    item = st.builds(
        _with_text,
        _element("item", {"class": st.from_regex(r"\A[a-z0-9.-]+\Z")}, optional=False),
        texts,
    )
    info = st.lists(item, min_size=1, max_size=3).map(
        lambda items: WbxmlElement("info", {}, tuple(items))
    )
    return st.builds(
        lambda first, others: WbxmlElement("si", {}, (first, *others)),
        indication,
        st.lists(info, max_size=1),
    )


def _sl() -> st.SearchStrategy[WbxmlElement]:
    return st.one_of(
        _element("sl", {"href": uris}, optional=False),
        _element("sl", {"href": uris, "action": _choices(SL, "sl")}, optional=False),
    )


def _co() -> st.SearchStrategy[WbxmlElement]:
    operation = st.one_of(
        _element("invalidate-object", {"uri": uris}, optional=False),
        _element("invalidate-service", {"uri": uris}, optional=False),
    )
    return st.lists(operation, min_size=1, max_size=4).map(
        lambda operations: WbxmlElement("co", {}, tuple(operations))
    )


def _emn() -> st.SearchStrategy[WbxmlElement]:
    return st.one_of(
        _element("emn", {"mailbox": uris}, optional=False),
        _element("emn", {"mailbox": uris, "timestamp": dates}, optional=False),
    )


def _documents(
    language: Language, root: st.SearchStrategy[WbxmlElement]
) -> st.SearchStrategy[WbxmlDocument]:
    return root.map(lambda element: WbxmlDocument(language, element))


valid = st.one_of(
    _documents(SI, _si()), _documents(SL, _sl()), _documents(CO, _co()), _documents(EMN, _emn())
)

names = st.sampled_from(["si", "item", "sl", "co", "emn", "href", "uri", "class", "x", "a-b:c.d_1"])


def _separated(children: list[WbxmlElement | str]) -> tuple[WbxmlElement | str, ...]:
    kept: list[WbxmlElement | str] = []
    for child in children:
        if child == "" or (kept and isinstance(child, str) and isinstance(kept[-1], str)):
            continue
        kept.append(child)
    return tuple(kept)


elements = st.recursive(
    st.builds(WbxmlElement, names, st.dictionaries(names, texts, max_size=3)),
    lambda inner: st.builds(
        WbxmlElement,
        names,
        st.dictionaries(names, texts, max_size=3),
        st.lists(st.one_of(inner, texts), max_size=4).map(_separated),
    ),
    max_leaves=10,
)

encodable = st.builds(
    WbxmlDocument, st.sampled_from(sorted(LANGUAGES)).map(LANGUAGES.get), elements
)
"""Whatever the document types say: unknown names, text anywhere."""
