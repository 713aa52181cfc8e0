"""Commands as a user types them, run in this process, and a gateway to use them on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from lasthop.runtime.cli import main
from tests.runtime.processes import GatewayProcess


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """The one JSON line that it printed."""
        (line,) = self.lines
        return json.loads(line)

    @property
    def error(self) -> str:
        """The one line that it complained with."""
        assert self.code != 0
        (line,) = self.err.splitlines()
        return line


Lasthop = Callable[..., Result]


@pytest.fixture
def lasthop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lasthop]:
    """Run `lasthop ARGUMENTS`; it must succeed, unless `fails`."""
    for name in ("LASTHOP_URL", "LASTHOP_TOKEN", "LASTHOP_APP", "LASTHOP_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, fails: bool = False) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capsys.readouterr()
        result = Result(int(ended.value.code or 0), out, err)
        assert (result.code != 0) is fails, result
        assert "Traceback" not in err
        return result

    yield run
    structlog.reset_defaults()  # Some commands say where their process logs to.


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway for all tests of a module; each uses names of its own."""
    data: Path = tmp_path_factory.mktemp("up") / "data"
    with GatewayProcess(data) as process:
        yield process
