"""The gateway's own log: readable lines on a terminal, JSON otherwise."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TextIO, cast

import structlog

_LEVELS = logging.getLevelNamesMapping()


class _Unbreakable:
    """Standard error whose failures are ignored: a reader that has gone must not stop the gateway,
    or keep it from stopping."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            return self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._file.flush()


def configure(level: str) -> None:
    """Log to standard error from this level on; libraries only from warnings on."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr)
    human = sys.stderr.isatty()
    renderer: structlog.typing.Processor
    if human:
        stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
        renderer = structlog.dev.ConsoleRenderer()
    else:
        stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            stamp,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Unbreakable(sys.stderr))),
        cache_logger_on_first_use=False,
    )
