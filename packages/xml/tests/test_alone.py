"""The package stands alone: nothing of the gateway is there when all of it is loaded."""

import json
import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

import lasthop_xml
from lasthop_xml.errors import InvalidInput, Malformed, TooLarge, XmlError
from lasthop_xml.soap.fault import SoapFault
from tests.places import PACKAGE

LOAD_ALL = """
import json, sys
from importlib import import_module
from pkgutil import walk_packages
import lasthop_xml
for each in walk_packages(lasthop_xml.__path__, "lasthop_xml."):
    import_module(each.name)
json.dump(sorted(sys.modules), sys.stdout)
"""


def test_no_module_of_the_package_loads_the_gateway() -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOAD_ALL],
        env={"PYTHONPATH": str(PACKAGE / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    loaded = json.loads(run.stdout)
    assert {each.name for each in walk_packages(lasthop_xml.__path__, "lasthop_xml.")} <= {*loaded}
    assert [name for name in loaded if name.partition(".")[0] == "lasthop"] == []


def test_no_test_can_load_the_gateway() -> None:
    with pytest.raises(ModuleNotFoundError, match="lasthop"):
        import_module("lasthop")


def test_every_error_is_of_a_kind_and_has_a_code_of_its_own() -> None:
    found: list[type[XmlError]] = []
    waiting = [XmlError]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].__subclasses__()
    assert len({error.code for error in found}) == len(found)
    assert all(issubclass(e, Malformed | InvalidInput | TooLarge | SoapFault) for e in found[1:])


def test_an_error_is_one_line_of_what_and_which() -> None:
    assert str(TooLarge("a document is too large", most=5)) == "a document is too large (most=5)"
    assert str(Malformed("no element")) == "no element"
