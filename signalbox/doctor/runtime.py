"""The end of support of the Lambda runtime that the functions get."""

from collections.abc import Mapping
from datetime import date, timedelta

from signalbox.doctor.findings import Finding, ok, stop, warn

RUNTIME = "Lambda runtime"
# The deprecation dates of https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html, read on 2026-11-22. New
# functions are refused a month later, updates two months later.
END_OF_SUPPORT: Mapping[tuple[int, int], date] = {
    (3, 11): date(2027, 6, 30),
    (3, 12): date(2028, 10, 31),
    (3, 13): date(2029, 6, 30),
    (3, 14): date(2029, 6, 30),
}
NOTICE = timedelta(days=270)


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
