"""The reasons why a message is not trusted.

InvalidInput
└── Untrusted               nothing of the message may be used
    ├── NotSigned             there is no signature, or more than one
    ├── AlgorithmRefused      an algorithm that is weak, unknown, or not that of the key
    ├── UnknownKey            no key of this name was given
    ├── SignatureWrong        made with another key, or over other bytes
    ├── Tampered              what is signed has changed since
    ├── NotCovered            the signature is good, but for something else than what is read
    └── CannotDecrypt         wrong key, or the ciphertext has changed
Malformed
└── MalformedSecurity       the markup of a signature or of encrypted data is incomplete
"""

from __future__ import annotations

from lasthop_xml.errors import InvalidInput, Malformed


class Untrusted(InvalidInput):
    code = "untrusted"


class NotSigned(Untrusted):
    code = "not_signed"


class AlgorithmRefused(Untrusted):
    code = "algorithm_refused"


class UnknownKey(Untrusted):
    code = "unknown_key"


class SignatureWrong(Untrusted):
    code = "signature_wrong"


class Tampered(Untrusted):
    code = "tampered"


class NotCovered(Untrusted):
    code = "not_covered"


class CannotDecrypt(Untrusted):
    """The data cannot be decrypted. The error gives no reason, since a reason would help an
    attacker."""

    code = "cannot_decrypt"


class MalformedSecurity(Malformed):
    code = "malformed_security"
