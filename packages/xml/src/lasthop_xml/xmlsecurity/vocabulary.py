"""Names and algorithms of XML Signature 1.1, XML Encryption 1.1 and RFC 9231."""

from __future__ import annotations

from typing import Final

from lasthop_xml.xas.names import XML_NS, Name

DSIG_NS: Final = "http://www.w3.org/2000/09/xmldsig#"
XENC_NS: Final = "http://www.w3.org/2001/04/xmlenc#"
EXC_C14N_NS: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
C14N2_NS: Final = "http://www.w3.org/2010/xml-c14n2"

PREFIXES: Final = {"ds": DSIG_NS, "xenc": XENC_NS}

EXCLUSIVE: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
"""Exclusive canonicalization, which depends on prefixes, and which every implementation has."""
CANONICAL_2: Final = "http://www.w3.org/2010/xml-c14n2"
"""Canonical XML 2.0; with the parameters that `write` sends, prefixes do not matter."""
ENVELOPED: Final = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"

SHA256: Final = "http://www.w3.org/2001/04/xmlenc#sha256"
RSA_SHA256: Final = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
ECDSA_SHA256: Final = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
HMAC_SHA256: Final = "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"
ED25519: Final = "http://www.w3.org/2021/04/xmldsig-more#eddsa-ed25519"

ELEMENT: Final = "http://www.w3.org/2001/04/xmlenc#Element"
AES256_GCM: Final = "http://www.w3.org/2009/xmlenc11#aes256-gcm"
AES_KEY_WRAP: Final = "http://www.w3.org/2001/04/xmlenc#kw-aes256"
RSA_OAEP: Final = "http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"

ALGORITHM: Final = Name("", "Algorithm")
URI: Final = Name("", "URI")
TYPE: Final = Name("", "Type")
MIME_TYPE: Final = Name("", "MimeType")
IDENTIFIERS: Final = (Name("", "Id"), Name(XML_NS, "id"))
"""The attributes that a reference can name. Other attributes are refused: otherwise a document
could choose which attributes identify its elements."""


def ds(local: str) -> Name:
    return Name(DSIG_NS, local)


def xenc(local: str) -> Name:
    return Name(XENC_NS, local)
