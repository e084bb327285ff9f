"""The programs of a deployment, and the end of support of the Lambda runtime that the functions get."""

from collections.abc import Mapping
from datetime import date, timedelta

from signalbox.doctor.findings import Finding, ok, stop, warn

PYTHON, NODE, RUNTIME = "Python", "Node", "Lambda runtime"
# The deprecation dates of https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html, read on 2026-11-22. New
# functions are refused a month later, updates two months later.
END_OF_SUPPORT: Mapping[tuple[int, int], date] = {
    (3, 11): date(2027, 6, 30),
    (3, 12): date(2028, 10, 31),
    (3, 13): date(2029, 6, 30),
    (3, 14): date(2029, 6, 30),
}
NOTICE = timedelta(days=270)
MINIMUM_NODE = 22  # what the CDK supports


def python_finding(version: tuple[int, int]) -> Finding:
    """Return the finding on the Python that builds the functions: they run on the same version."""
    name = ".".join(map(str, version))
    if version not in END_OF_SUPPORT:
        known = ", ".join(f"{major}.{minor}" for major, minor in END_OF_SUPPORT)
        return stop(PYTHON, f"Lambda has no runtime for Python {name}", remedy=f"deploy with one of {known}")
    return ok(PYTHON, name)


def runtime_finding(version: tuple[int, int], *, today: date) -> Finding | None:
    """Return the finding on the end of support of a Python version's runtime; None for a version without one."""
    end = END_OF_SUPPORT.get(version)
    if end is None:
        return None
    name = f"python{version[0]}.{version[1]}"
    remedy = f"deploy with Python {_newest()}: make deploy PYTHON=python{_newest()}"
    if today > end:
        return stop(RUNTIME, f"{name}: AWS ended its support on {end}", remedy=remedy)
    if today > end - NOTICE:
        return warn(RUNTIME, f"{name}: AWS ends its support on {end}", remedy=remedy)
    return ok(RUNTIME, f"{name}, supported until {end}")


def _newest() -> str:
    return ".".join(map(str, max(END_OF_SUPPORT)))


def node_finding(version: str | None) -> Finding:
    """Return the finding on the Node of the CDK command line; `version` is such as `24.1.0`, None without a Node."""
    remedy = f"install Node {MINIMUM_NODE} or newer, or run `make up` once, which installs one as a Python package"
    if version is None:
        return stop(NODE, "no Node was found", remedy=remedy)
    if int(version.split(".")[0]) < MINIMUM_NODE:
        return stop(NODE, f"{version} is older than {MINIMUM_NODE}", remedy=remedy)
    return ok(NODE, version)
