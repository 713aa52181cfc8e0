"""Names of networks and bearers in a quality of service, as WDP spells them.

PAP accepts any text. These are the names that an initiator can be expected to know; a gateway may
serve others, and compares all of them without regard to case.
"""

from __future__ import annotations

ANY = "Any"
"""The name that asks for no particular network or bearer."""

NETWORKS: tuple[str, ...] = (
    ANY,
    "GSM",
    "ANSI-136",
    "IS-95 CDMA",
    "AMPS",
    "PDC",
    "IDEN",
    "Paging network",
    "PHS",
    "TETRA",
    "Mobitex",
)
BEARERS: tuple[str, ...] = (
    ANY,
    "USSD",
    "SMS",
    "GUTS/R-Data",
    "CSD",
    "Packet Data",
    "GPRS",
    "CDPD",
    "FLEX",
    "SDS",
    "ReFLEX",
    "MPAK",
    "GHOST/R_DATA",
)


def serves(wanted: str | None, offered: frozenset[str]) -> bool:
    """Whether one of the offered networks or bearers is the wanted one, if one is wanted.

    >>> serves("sms", frozenset({"SMS"})), serves("GPRS", frozenset({"SMS"}))
    (True, False)
    """
    # PPG service, 5.1.2.2.2: without a required network or bearer any will do.
    if wanted is None or not wanted.strip() or wanted.strip().lower() == ANY.lower():
        return True
    return wanted.strip().lower() in {name.lower() for name in offered}
