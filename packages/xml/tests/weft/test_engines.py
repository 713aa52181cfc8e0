"""Both engines are one program."""

import hashlib
from importlib import import_module

import pytest

from lasthop_xml.weft.engines import BEST, COMPILED, PURE
from lasthop_xml.weft.session import Level, WeftEncoder
from tests.places import PACKAGE
from tests.weft.ends import messages, sample
from tests.xas.documents import Documents

ENGINE = PACKAGE / "src/lasthop_xml/weft/engine"
built = pytest.mark.skipif(COMPILED is None, reason="`make accelerate` has not been run")


def test_pure_python_is_always_there() -> None:
    assert not PURE.compiled
    assert BEST is (COMPILED or PURE)
    assert str(PURE) == "pure"


@built
def test_what_was_compiled_is_what_the_sources_say() -> None:
    sources = [*sorted(ENGINE.glob("*.py")), *sorted(ENGINE.glob("*.pxd"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    compiled = import_module("lasthop_xml.weft.compiled")
    assert digest == compiled.SOURCES, "run `make accelerate` again"


@built
@pytest.mark.parametrize("level", Level)
def test_both_engines_send_the_same_bytes(level: Level) -> None:
    assert COMPILED is not None
    source = Documents(11)
    documents = [*sample(30), *(source.next() for _ in range(20))]
    sent = [messages(WeftEncoder(level, engine=engine), documents) for engine in (PURE, COMPILED)]
    assert sent[0] == sent[1]
