"""Let a coverage-guided fuzzer have a go at one target: atheris (libFuzzer), or else `guided`.

    PYTHONPATH=src:. python tests/fuzz/run.py hop --seconds 600

The targets are those of the package that it is started in. What it finds is kept below build/fuzz/:
inputs that reach new code in a folder of the target's name, and a file for each that crashes, hangs
or takes too much memory. `--input FILE` runs one. Both begin with the kept corpus of the target;
`--keep` makes a new one of what was found: as few and as small inputs as reach all of it.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SLOWEST = 5
"""Seconds of the processor for one input; with coverage, hundreds of times what a message takes."""
STUCK = 120
"""Seconds of a clock after which an input never ends, however busy the machine is."""
MEMORY = 768
"""MiB of the process, of which it has about 150 before the first input."""
LONGEST = 2**16
PACKAGES = ["lasthop.wire", "lasthop.runtime", "lasthop_xml"]
"""The packages whose coverage guides the fuzzer."""


class FuzzedTarget:
    """A target with its places for what is found, and for what is kept."""

    def __init__(self, name: str, targets: Any, into: Path) -> None:
        self.name = name
        self._targets = targets
        self._target = targets.TARGETS[name]
        self.folder = into / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kept = Path(targets.__file__).with_name("corpus") / name

    def check(self, data: bytes) -> bool:
        """Whether the target understands an input; raises whatever is wrong with the target."""
        started = time.process_time()
        understood: bool = self._targets.check(self._target, data)
        if time.process_time() - started > SLOWEST:
            raise TimeoutError(f"an input takes more than {SLOWEST} seconds")
        return understood

    def begin(self) -> None:
        """Put seeds and the kept corpus where the fuzzer begins."""
        for number, seed in enumerate(self._target.seeds()):
            (self.folder / f"seed-{number:04}").write_bytes(seed)
        if self.kept.is_dir():
            for file in self.kept.iterdir():
                (self.folder / f"kept-{file.name}").write_bytes(file.read_bytes())


def main() -> None:
    arguments = _arguments()
    by_atheris = find_spec("atheris") is not None
    targets = _instrumented() if by_atheris else import_module("tests.fuzz.targets")
    if arguments.target not in targets.TARGETS:
        sys.exit(f"no target {arguments.target!r}; there are {', '.join(targets.TARGETS)}")
    fuzzed = FuzzedTarget(arguments.target, targets, arguments.into)
    if arguments.input is not None:
        print("understood" if fuzzed.check(arguments.input.read_bytes()) else "refused")
        return
    fuzzed.begin()
    if arguments.keep:
        _keep(fuzzed)
    elif by_atheris:
        _by_atheris(fuzzed, arguments.seconds)
    else:
        _guided(fuzzed, arguments.seconds)


def _instrumented() -> Any:
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=PACKAGES):
        return import_module("tests.fuzz.targets")


def _by_atheris(fuzzed: FuzzedTarget, seconds: int) -> None:
    atheris = import_module("atheris")
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={STUCK}",
        f"-rss_limit_mb={MEMORY}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={fuzzed.folder}-",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(fuzzed.folder)], fuzzed.check)
    atheris.Fuzz()


def _guided(fuzzed: FuzzedTarget, seconds: int) -> None:
    """Fuzz without atheris, and print the same figures."""
    guided = import_module("guided")  # Beside this file, for every package.
    fuzzer = guided.GuidedFuzzer(fuzzed.check, PACKAGES, seed=int(time.time()))
    seeds = guided.corpus(fuzzed.folder)
    first = 0
    try:
        for found in fuzzer.run(seeds, seconds):
            first = first or len(fuzzer.reached)
            guided.add(fuzzed.folder, found)
    except Exception:
        guided.add(fuzzed.folder.with_name(f"{fuzzed.name}-crash"), fuzzer.failing)
        raise
    finally:
        reached, memory = len(fuzzer.reached), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"INITED cov: {first or reached} ft: {len(seeds)}")
        print(f"DONE cov: {reached} ft: {len(fuzzer.kept)}")
        print(f"stat::number_of_executed_units: {fuzzer.executions}")
        print(f"stat::peak_rss_mb: {memory >> 10}")


def _keep(fuzzed: FuzzedTarget) -> None:
    """Make the kept corpus of what was found until now: of the small inputs, as few as reach all
    that the small ones reach beyond the seeds."""
    guided = import_module("guided")
    seeds = [file.read_bytes() for file in fuzzed.folder.glob("seed-*")]
    found = [data for data in guided.corpus(fuzzed.folder) if len(data) <= guided.SMALL]
    kept = guided.smallest(fuzzed.check, PACKAGES, found, beyond=seeds)
    guided.keep(fuzzed.kept, kept)
    print(f"{fuzzed.name}: {len(kept)} inputs, {sum(map(len, kept))} bytes")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--into", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--input", type=Path)
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
