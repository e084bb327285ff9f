"""Checks of settings that name something outside of the settings: files, ARNs and regions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from stacks.settings.clusters import KubernetesClusters
from stacks.settings.setting import parts

if TYPE_CHECKING:
    from stacks.settings.choices import Choices

# Regions of other partitions (China, GovCloud, the isolated ones, the European Sovereign Cloud), by botocore's
# endpoints.json. Service names in policies and URLs end differently there, and no stage was tried in one.
UNTRIED_REGIONS = ("cn-", "us-gov-", "us-iso", "eu-iso", "eusc-")
# The networks of a database that are looked at: of those of a country database, nearly all have a country.
NETWORKS = 10_000

# Yields the problems of a value on a stage in a region; None if the region is unknown before the deployment.
Check = Callable[[Any, str | None], Iterator[str]]


def broken_references(config: "Choices", region: str | None) -> Iterator[str]:
    """Yield the problems of all settings that `CHECKS` names, for a stage in a region."""
    for name, check in CHECKS.items():
        value = getattr(config, name)
        if value is not None:
            yield from (f"{name} {problem}" for problem in check(value, region))


def broken_region(region: str | None) -> Iterator[str]:
    """Yield the problem of a region in which no stage can be."""
    if region is None:
        return
    if region.startswith(UNTRIED_REGIONS):
        yield f"region {region!r} is in another partition than `aws`, in which no stage was tried: choose another"
        return
    import botocore.session  # noqa: PLC0415 - the distribution for CDK apps, which sets no region, does not have it

    known = botocore.session.get_session().get_available_regions("lambda", "aws")
    if region not in known:
        nearest = get_close_matches(region, known, n=1)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        yield f"region {region!r} is unknown to the installed botocore: {hint}For a new region, update botocore"


def _in_region(arns: str, region: str | None) -> Iterator[str]:
    yield from _elsewhere(parts(arns), region)


def _clusters_in_region(clusters: KubernetesClusters, region: str | None) -> Iterator[str]:
    yield from _elsewhere((*clusters.token_secrets, *clusters.token_secret_keys), region)


def _elsewhere(arns: Iterable[str], region: str | None) -> Iterator[str]:
    for arn in arns:
        if region is not None and arn.split(":")[3] != region:
            yield f"{arn!r} must be in region {region!r}, in which the stage is"


def _text(path: Path, _region: str | None) -> Iterator[str]:
    try:
        path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        yield f"is no readable text: {error}"


def _country_database(path: Path, _region: str | None) -> Iterator[str]:
    import maxminddb  # noqa: PLC0415 - most stages have no database

    try:
        with maxminddb.open_database(path) as database:
            kind = database.metadata().database_type
            has_countries = any(
                "country" in record for _, record in islice(database, NETWORKS) if isinstance(record, dict)
            )
    except (OSError, ValueError, maxminddb.InvalidDatabaseError) as error:
        yield f"is no readable MaxMind database: {error}"
        return
    if not has_countries:
        yield f"has no countries: its type is {kind!r}, and one such as GeoLite2-Country is needed"


def _url(url: str, _region: str | None) -> Iterator[str]:
    try:
        port = urlsplit(url).port
    except ValueError as error:
        yield f"is no URL: {error}"
        return
    labels = str(urlsplit(url).hostname).removesuffix(".").split(".")
    if port == 0 or not all(label.strip("-") == label != "" for label in labels):
        yield f"names no host: {url!r}"


CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        # app.py reads the list itself, with the parser of the functions.
        "bridge_list_file": _text,
        "country_database_file": _country_database,
        "broker_url": _url,
        "broker_queue_arn": _in_region,
        "broker_queue_key_arn": _in_region,
        "splittable_queue_key_arns": _in_region,
        "kubernetes_clusters": _clusters_in_region,
        "alarm_topic_arn": _in_region,
        "asset_key_arn": _in_region,
    }
)
