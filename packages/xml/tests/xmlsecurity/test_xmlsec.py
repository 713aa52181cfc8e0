"""The signatures and ciphertexts of xmlsec1 are ours, and the other way round."""

import os
import subprocess
from pathlib import Path

import pytest

from lasthop_xml.xas.sequence import EventList
from lasthop_xml.xas.transform import untyped
from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xas.xmlserialize import serialize_xml
from lasthop_xml.xebu.decoder import Decoder
from lasthop_xml.xebu.encoder import Encoder
from lasthop_xml.xmlsecurity.encryption import decrypt, encrypt
from lasthop_xml.xmlsecurity.errors import Tampered
from lasthop_xml.xmlsecurity.keys import (
    Secret,
    SharedKey,
    signing_key,
    unwrapping_key,
    verifying_key,
    wrapping_key,
)
from lasthop_xml.xmlsecurity.signing import sign
from lasthop_xml.xmlsecurity.verifying import verify
from tests.installed import need
from tests.xmlsecurity.material import (
    DOCUMENT,
    ORDER,
    PAYMENT,
    events,
    private_pem,
    public_pem,
)

pytestmark = pytest.mark.peer

AT = (ORDER, PAYMENT)
SECRET, SHARED = b"0123456789abcdef", bytes(range(32))


@pytest.fixture(autouse=True)
def _installed() -> None:
    need("xmlsec1")


def xmlsec(*arguments: object, document: Path, succeeds: bool = True) -> str:
    run = subprocess.run(
        ["xmlsec1", *map(str, arguments), str(document)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode == 0) is succeeds, run.stdout + run.stderr
    return run.stdout


def files(folder: Path) -> None:
    for kind in ("rsa", "ec"):
        (folder / f"{kind}.pem").write_bytes(private_pem(kind))
        (folder / f"{kind}.pub").write_bytes(public_pem(kind))
    (folder / "secret").write_bytes(SECRET)
    (folder / "shared").write_bytes(SHARED)


def through_xebu(document: bytes) -> EventList:
    return Decoder().decode(Encoder().encode(parse_xml(document)))


@pytest.mark.parametrize("kind", ["rsa", "ec", "secret"])
@pytest.mark.parametrize("part", [False, True])
def test_xmlsec_verifies_what_we_sign(tmp_path: Path, kind: str, part: bool) -> None:
    files(tmp_path)
    key = Secret("secret", SECRET) if kind == "secret" else signing_key(kind, private_pem(kind))
    signed = sign(events(), key, at=AT if part else None, form="exclusive")
    # Also after it was Xebu on its way.
    document = tmp_path / "signed.xml"
    document.write_bytes(serialize_xml(through_xebu(serialize_xml(signed))))
    option = "--hmackey" if kind == "secret" else "--pubkey-pem"
    file = "secret" if kind == "secret" else f"{kind}.pub"
    given = (f"{option}:{kind}", tmp_path / file, "--id-attr:Id", "urn:shop:pay")
    xmlsec("--verify", *given, document=document)
    document.write_bytes(document.read_bytes().replace(b"4711", b"4712"))
    xmlsec("--verify", *given, document=document, succeeds=False)


TEMPLATE = b"""<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo>
<CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>
<SignatureMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#%s"/>
<Reference URI="%s"><Transforms>%s<Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>
</Transforms><DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><DigestValue/>
</Reference></SignedInfo><SignatureValue/><KeyInfo><KeyName>%s</KeyName></KeyInfo></Signature>"""
ENVELOPED = b'<Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"/>'


@pytest.mark.parametrize("kind", ["rsa", "ec", "secret"])
@pytest.mark.parametrize("part", [False, True])
def test_we_verify_what_xmlsec_signs(tmp_path: Path, kind: str, part: bool) -> None:
    files(tmp_path)
    method = {"rsa": b"rsa-sha256", "ec": b"ecdsa-sha256", "secret": b"hmac-sha256"}[kind]
    what = (b"#payment", b"") if part else (b"", ENVELOPED)
    template = TEMPLATE % (method, *what, kind.encode())
    document = tmp_path / "template.xml"
    document.write_bytes(DOCUMENT.replace(b"</s:order>", template + b"</s:order>"))
    option = "--hmackey" if kind == "secret" else "--privkey-pem"
    file = "secret" if kind == "secret" else f"{kind}.pem"
    signed = xmlsec(
        *("--sign", f"{option}:{kind}", tmp_path / file, "--id-attr:Id", "urn:shop:pay"),
        document=document,
    ).encode()
    key = Secret("secret", SECRET) if kind == "secret" else verifying_key(kind, public_pem(kind))
    at = AT if part else None
    for form in (parse_xml(signed), through_xebu(signed)):
        assert verify(form, [key], at=at).key == kind
    with pytest.raises(Tampered):
        verify(parse_xml(signed.replace(b"4711", b"4712")), [key], at=at)


@pytest.mark.parametrize("kind", ["rsa", "shared"])
def test_xmlsec_decrypts_what_we_encrypt(tmp_path: Path, kind: str) -> None:
    files(tmp_path)
    key = SharedKey("shared", SHARED) if kind == "shared" else wrapping_key(kind, public_pem(kind))
    secret = encrypt(events(), key, at=AT, entropy=os.urandom)
    document = tmp_path / "encrypted.xml"
    document.write_bytes(serialize_xml(through_xebu(serialize_xml(secret))))
    given = (
        ("--aeskey:shared", tmp_path / "shared")
        if kind == "shared"
        else ("--privkey-pem:rsa", tmp_path / "rsa.pem")
    )
    plain = xmlsec("--decrypt", *given, document=document).encode()
    assert parse_xml(plain)[-4:] == parse_xml(DOCUMENT)[-4:]
    assert b">4711</s:card>" in plain


@pytest.mark.parametrize("kind", ["rsa", "shared"])
def test_we_decrypt_what_xmlsec_encrypts(tmp_path: Path, kind: str) -> None:
    files(tmp_path)
    method = "kw-aes256" if kind == "shared" else "rsa-oaep-mgf1p"
    template = tmp_path / "template.xml"
    template.write_text(f"""<EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"
 Type="http://www.w3.org/2001/04/xmlenc#Element"><EncryptionMethod
 Algorithm="http://www.w3.org/2009/xmlenc11#aes256-gcm"/>
 <KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><EncryptedKey
 xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod
 Algorithm="http://www.w3.org/2001/04/xmlenc#{method}"/><KeyInfo
 xmlns="http://www.w3.org/2000/09/xmldsig#"><KeyName>{kind}</KeyName></KeyInfo><CipherData>
 <CipherValue/></CipherData></EncryptedKey></KeyInfo><CipherData><CipherValue/></CipherData>
 </EncryptedData>""")
    plain = tmp_path / "plain.xml"
    plain.write_bytes(DOCUMENT)
    given = (
        ("--aeskey:shared", tmp_path / "shared")
        if kind == "shared"
        else ("--pubkey-pem:rsa", tmp_path / "rsa.pub")
    )
    secret = xmlsec(
        *("--encrypt", *given, "--session-key", "aes-256", "--xml-data", plain),
        *("--node-id", "payment", "--id-attr:Id", "urn:shop:pay"),
        document=template,
    ).encode()
    assert b"4711" not in secret
    key = (
        SharedKey("shared", SHARED)
        if kind == "shared"
        else unwrapping_key("rsa", private_pem("rsa"))
    )
    for form in (parse_xml(secret), through_xebu(secret)):
        assert list(untyped(decrypt(form, [key]))) == parse_xml(DOCUMENT)
