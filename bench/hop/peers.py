"""The brokers that lasthop is compared with, each in a directory and on a port of its own.

They come from Debian's packages, but the instance that a package may have started is never used.
They get the settings that make them fastest for this load without giving up what the row of the
table promises; the settings are part of the report.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import run

from bench.hop.processes import end, free_port, spawn, wait_for_port

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The server itself, not the wrapper in /usr/sbin, which insists on the machine's own instance."""

MOSQUITTO_SETTINGS = {
    "persistence": "false",
    "allow_anonymous": "true",
    "max_inflight_messages": "0",
    "max_queued_messages": "0",
    "set_tcp_nodelay": "true",
    "log_type": "error",
}

RABBITMQ_SETTINGS = {
    "tcp_listen_options.nodelay": "true",
    "tcp_listen_options.backlog": "4096",
    "disk_free_limit.absolute": "50MB",
    "vm_memory_high_watermark.relative": "0.6",
    "log.file.level": "error",
}


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker of another system."""

    name: str
    version: str
    port: int
    pid: int


def missing() -> list[str]:
    """Return the Debian packages that must be installed first."""
    absent = []
    if mosquitto_program() is None:
        absent.append("mosquitto")
    if shutil.which("mosquitto_sub") is None or shutil.which("mosquitto_pub") is None:
        absent.append("mosquitto-clients")
    if not RABBITMQ.exists():
        absent.append("rabbitmq-server")
    return absent


def mosquitto_program() -> str | None:
    """Return Mosquitto's path, also where only root's PATH has it; None if it is not installed."""
    return shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


@contextmanager
def mosquitto(directory: Path) -> Iterator[Broker]:
    """Run Mosquitto without persistence, and without a limit of messages in flight."""
    program = mosquitto_program()
    assert program is not None
    directory.mkdir(parents=True)
    port = free_port()
    settings = {"listener": f"{port} 127.0.0.1", **MOSQUITTO_SETTINGS}
    if os.getuid() == 0:
        settings["user"] = "root"
    configuration = directory / "mosquitto.conf"
    configuration.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    process = spawn([program, "-c", str(configuration)], log=directory / "log")
    try:
        wait_for_port(port, process)
        yield Broker("Mosquitto", _version("mosquitto"), port, process.pid)
    finally:
        end(process)


@contextmanager
def rabbitmq(directory: Path) -> Iterator[Broker]:
    """Run RabbitMQ with its own port mapper, which would otherwise stay as a daemon."""
    directory.mkdir(parents=True)
    port, mapper_port = free_port(), free_port()
    (directory / "plugins").write_text("[].\n")
    settings = {"listeners.tcp.1": f"127.0.0.1:{port}", **RABBITMQ_SETTINGS}
    lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
    (directory / "rabbitmq.conf").write_text(lines)
    environment = {
        "HOME": str(directory),
        "ERL_EPMD_PORT": str(mapper_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
        "RABBITMQ_LOG_BASE": str(directory / "logs"),
        "RABBITMQ_SCHEMA_DIR": str(directory / "schema"),
        "RABBITMQ_PID_FILE": str(directory / "pid"),
    }
    mapper = spawn(["epmd"], log=directory / "epmd.log", environment=environment)
    try:
        wait_for_port(mapper_port, mapper)
        process = spawn([str(RABBITMQ)], log=directory / "log", environment=environment)
        try:
            wait_for_port(port, process)
            yield Broker("RabbitMQ", _version("rabbitmq-server"), port, process.pid)
        finally:
            end(process, sign=signal.SIGKILL)
    finally:
        end(mapper)


def _version(package: str) -> str:
    query = ["dpkg-query", "--show", "--showformat=${Version}", package]
    return run(query, capture_output=True, text=True, check=False).stdout or "unknown"
