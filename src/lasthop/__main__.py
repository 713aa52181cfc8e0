"""`lasthop` and `python -m lasthop`: the command line, or the line that installs it."""

from __future__ import annotations

import sys

from lasthop.extras import install_line


def main() -> None:
    """Run the command line; say how to install it where only the device is installed."""
    try:
        from lasthop.runtime.cli import main as run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        sys.exit(f"lasthop: the command line needs {error.name}: {install_line(error)}")
    run()


if __name__ == "__main__":
    main()
