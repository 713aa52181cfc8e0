"""libwbxml reads what we write, and we read what it writes, with the same meaning.

Octets are not compared: encoders may choose between tokens and text. A run of all documents takes
WBXML_DOCUMENTS=2000, which `make nightly` sets.

About `wire/wbxml/encoder.py` and `wire/wbxml/decoder.py`.
"""

import os
import subprocess
from pathlib import Path
from random import Random

import pytest

from lasthop.wire.wbxml.decoder import decode
from lasthop.wire.wbxml.document import WbxmlDocument
from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.language import Language
from lasthop.wire.wbxml.languages import LANGUAGES
from lasthop.wire.wbxml.validity import check
from lasthop.wire.wbxml.xml_reader import read_xml
from lasthop.wire.wbxml.xml_writer import write_xml
from tests.wire.installed import need
from tests.wire.wbxml.generated import generate

pytestmark = pytest.mark.peer

DOCUMENTS = int(os.environ.get("WBXML_DOCUMENTS", "200"))

SCRIPT = """
cd "$1"
for file in *.ours; do
    name=${file%.ours}
    wbxml2xml -k -m 2 -o "$name.text" "$file" || echo "wbxml2xml $file"
    xml2wbxml -k $2 -o "$name.theirs" "$name.xml" || echo "xml2wbxml $file"
done 2>/dev/null
"""
"""Both directions for all files in a directory, in one shell; prints what failed."""


def exchange(documents: list[WbxmlDocument], folder: Path, option: str = "") -> None:
    """Show documents to the peer, and check what comes back."""
    for number, document in enumerate(documents):
        check(document)
        string_table = number % 2 == 1
        (folder / f"{number}.ours").write_bytes(encode(document, string_table=string_table))
        (folder / f"{number}.xml").write_text(write_xml(document), newline="")
    done = subprocess.run(
        ["sh", "-c", SCRIPT, "sh", str(folder), option],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout == ""
    for number, document in enumerate(documents):
        assert read_xml((folder / f"{number}.text").read_bytes()) == document
        assert decode((folder / f"{number}.theirs").read_bytes()) == document


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_documents_mean_the_same_both_ways(language: Language, tmp_path: Path) -> None:
    need("xml2wbxml", "wbxml2xml")
    random = Random(f"libwbxml {language.key}")
    exchange([generate(language, random) for _ in range(DOCUMENTS)], tmp_path)


@pytest.mark.parametrize("version", ["1.1", "1.2", "1.3"])
def test_every_version_that_it_writes_is_read(version: str, tmp_path: Path) -> None:
    need("xml2wbxml", "wbxml2xml")
    random = Random(version)
    documents = [generate(language, random) for language in LANGUAGES.values() for _ in range(5)]
    exchange(documents, tmp_path, f"-v{version}")
