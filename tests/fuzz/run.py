"""Let atheris (libFuzzer) have a go at one target.

    PYTHONPATH=src:. python tests/fuzz/run.py hop --seconds 600

The targets are those of the package that it is started in. What it finds is kept below build/fuzz/:
inputs that reach new code in a folder of the target's name, and a file for each that crashes, hangs
or takes too much memory. `--input FILE` runs one.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

SLOWEST = 5
"""Seconds of the processor for one input; with coverage, hundreds of times what a message takes."""
STUCK = 120
"""Seconds of a clock after which an input never ends, however busy the machine is."""
MEMORY = 768
"""MiB of the process, of which it has about 150 before the first input."""
LONGEST = 2**16


def main() -> None:
    arguments = _arguments()
    atheris = import_module("atheris")
    with atheris.instrument_imports(include=["lasthop.wire", "lasthop_xml"]):
        targets = import_module("tests.fuzz.targets")
    target = targets.TARGETS.get(arguments.target)
    if target is None:
        sys.exit(f"no target {arguments.target!r}; there are {', '.join(targets.TARGETS)}")
    if arguments.input is not None:
        print("understood" if targets.check(target, arguments.input.read_bytes()) else "refused")
        return
    folder = arguments.into / arguments.target
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (folder / f"seed-{number:04}").write_bytes(seed)
    options = [
        f"-max_total_time={arguments.seconds}",
        f"-timeout={STUCK}",
        f"-rss_limit_mb={MEMORY}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={arguments.into / arguments.target}-",
        "-print_final_stats=1",
    ]

    def one_input(data: bytes) -> None:
        started = time.process_time()
        targets.check(target, data)
        if time.process_time() - started > SLOWEST:
            raise TimeoutError(f"an input takes more than {SLOWEST} seconds")

    atheris.Setup([sys.argv[0], *options, str(folder)], one_input)
    atheris.Fuzz()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--into", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--input", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
