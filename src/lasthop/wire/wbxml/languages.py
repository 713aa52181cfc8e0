"""The token tables and document type definitions of SI, SL, CO and EMN.

All four use code page 0 only, and share the four endings of host names as attribute values.
"""

from __future__ import annotations

from lasthop.wire.wbxml.language import Language, Model

_HOST_ENDINGS = {0: {0x85: ".com/", 0x86: ".edu/", 0x87: ".net/", 0x88: ".org/"}}

SI = Language(  # Service Indication 1.0 (WAP-167)
    key="si",
    name="SI 1.0",
    number=0x05,
    public_id="-//WAPFORUM//DTD SI 1.0//EN",
    system_id="http://www.wapforum.org/DTD/si.dtd",
    text_type="text/vnd.wap.si",
    binary_type="application/vnd.wap.sic",
    tags={0: {0x05: "si", 0x06: "indication", 0x07: "info", 0x08: "item"}},
    attribute_starts={
        0: {
            0x05: "action=signal-none",
            0x06: "action=signal-low",
            0x07: "action=signal-medium",
            0x08: "action=signal-high",
            0x09: "action=delete",
            0x0A: "created",
            0x0B: "href",
            0x0C: "href=http://",
            0x0D: "href=http://www.",
            0x0E: "href=https://",
            0x0F: "href=https://www.",
            0x10: "si-expires",
            0x11: "si-id",
            0x12: "class",
        }
    },
    attribute_values=_HOST_ENDINGS,
    dates=frozenset({"created", "si-expires"}),
    models={
        "si": Model(children="indication (info )?"),
        "indication": Model(
            optional=frozenset({"href", "si-id", "created", "si-expires", "action"}),
            choices={
                "action": frozenset(
                    {"signal-none", "signal-low", "signal-medium", "signal-high", "delete"}
                )
            },
        ),
        "info": Model(children="(item )+"),
        "item": Model(required=frozenset({"class"})),
    },
)

SL = Language(  # Service Loading 1.0 (WAP-168)
    key="sl",
    name="SL 1.0",
    number=0x06,
    public_id="-//WAPFORUM//DTD SL 1.0//EN",
    system_id="http://www.wapforum.org/DTD/sl.dtd",
    text_type="text/vnd.wap.sl",
    binary_type="application/vnd.wap.slc",
    tags={0: {0x05: "sl"}},
    attribute_starts={
        0: {
            0x05: "action=execute-low",
            0x06: "action=execute-high",
            0x07: "action=cache",
            0x08: "href",
            0x09: "href=http://",
            0x0A: "href=http://www.",
            0x0B: "href=https://",
            0x0C: "href=https://www.",
        }
    },
    attribute_values=_HOST_ENDINGS,
    models={
        "sl": Model(
            children="",
            required=frozenset({"href"}),
            optional=frozenset({"action"}),
            choices={"action": frozenset({"execute-low", "execute-high", "cache"})},
        )
    },
)

CO = Language(  # Cache Operation 1.0 (WAP-175)
    key="co",
    name="CO 1.0",
    number=0x07,
    public_id="-//WAPFORUM//DTD CO 1.0//EN",
    system_id="http://www.wapforum.org/DTD/co_1.0.dtd",
    text_type="text/vnd.wap.co",
    binary_type="application/vnd.wap.coc",
    tags={0: {0x05: "co", 0x06: "invalidate-object", 0x07: "invalidate-service"}},
    attribute_starts={
        0: {
            0x05: "uri",
            0x06: "uri=http://",
            0x07: "uri=http://www.",
            0x08: "uri=https://",
            0x09: "uri=https://www.",
        }
    },
    attribute_values=_HOST_ENDINGS,
    models={
        "co": Model(children="(invalidate-object |invalidate-service )+"),
        "invalidate-object": Model(children="", required=frozenset({"uri"})),
        "invalidate-service": Model(children="", required=frozenset({"uri"})),
    },
)

EMN = Language(  # Email Notification 1.0
    key="emn",
    name="EMN 1.0",
    number=0x0D,
    public_id="-//WAPFORUM//DTD EMN 1.0//EN",
    system_id="http://www.wapforum.org/DTD/emn.dtd",
    text_type="text/vnd.wap.emn+xml",
    binary_type="application/vnd.wap.emn+wbxml",
    tags={0: {0x05: "emn"}},
    attribute_starts={
        0: {
            0x05: "timestamp",
            0x06: "mailbox",
            0x07: "mailbox=mailat:",
            0x08: "mailbox=pop://",
            0x09: "mailbox=imap://",
            0x0A: "mailbox=http://",
            0x0B: "mailbox=http://www.",
            0x0C: "mailbox=https://",
            0x0D: "mailbox=https://www.",
        }
    },
    # Decoders disagree whether these end in a slash, as in the other languages. They are read
    # without, as by the decoder that cites the EMN document, and never written.
    attribute_values={0: {0x85: ".com", 0x86: ".edu", 0x87: ".net", 0x88: ".org"}},
    write_values=False,
    dates=frozenset({"timestamp"}),
    models={
        "emn": Model(
            children="", required=frozenset({"mailbox"}), optional=frozenset({"timestamp"})
        )
    },
)

LANGUAGES = {language.key: language for language in (SI, SL, CO, EMN)}
"""Every language, by its name on a command line, which is also its root element."""

BY_NUMBER = {language.number: language for language in LANGUAGES.values()}
BY_PUBLIC_ID = {language.public_id: language for language in LANGUAGES.values()}
BY_TEXT_TYPE = {language.text_type: language for language in LANGUAGES.values()}
BY_BINARY_TYPE = {language.binary_type: language for language in LANGUAGES.values()}


def with_public_id(public_id: str) -> Language | None:
    """Return the language of a formal public identifier, whose white space does not count; None if
    unknown."""
    return BY_PUBLIC_ID.get(" ".join(public_id.split()))
