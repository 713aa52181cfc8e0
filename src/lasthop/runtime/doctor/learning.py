"""Checks what the pipeline needs. A gateway runs without it."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

from lasthop.pipeline.java import candidates, describe
from lasthop.runtime.doctor.finding import Finding, could_be_better, good

INSTALL = "pip install 'lasthop[pipeline]'"

PACKAGES = ("pyspark", "pyarrow", "pandas")


def spark() -> Finding:
    """Check that the packages of the pipeline are installed."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        return could_be_better("spark", f"no {', '.join(missing)}: nothing is learned", INSTALL)
    return good("spark", metadata.version("pyspark"))


def java() -> Finding:
    """Check that there is a version of Java on which Spark runs."""
    refused = []
    for place in candidates():
        found = describe(place)
        if found is None:
            continue
        if found.unsuitable is None:
            return good("java", f"{'.'.join(map(str, found.version))} in {found.home}")
        refused.append(found.unsuitable)
    said = "; ".join(refused) or "none found"
    return could_be_better("java", f"{said}: nothing is learned", f"install Java 21, or {INSTALL}")
