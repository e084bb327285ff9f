"""The country lookup in a MaxMind database file."""

from pathlib import Path

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from signalbox.aws.rendezvous.countries import country_database


@pytest.fixture
def database(tmp_path: Path) -> Path:
    writer = MMDBWriter(ip_version=6, ipv4_compatible=True, database_type="GeoLite2-Country")
    writer.insert_network(IPSet(["8.8.4.0/24"]), {"country": {"iso_code": "US"}})
    writer.insert_network(IPSet(["9.9.9.0/24"]), {"continent": {"code": "EU"}})
    writer.insert_network(IPSet(["2a00:1450::/32"]), {"country": {"iso_code": "IE"}})
    path = tmp_path / "country.mmdb"
    writer.to_db_file(str(path))
    return path


@pytest.mark.parametrize(
    ("address", "country"),
    [
        ("8.8.4.4", "US"),
        ("2a00:1450::1", "IE"),
        ("1.1.1.1", "??"),
        pytest.param("9.9.9.9", "??", id="no country in the record"),
        pytest.param(None, "??", id="no address"),
    ],
)
def test_the_country_is_read_from_the_file(database: Path, address: str | None, country: str) -> None:
    assert country_database(database)(address) == country


def test_an_address_of_ipv6_is_unknown_to_a_file_of_ipv4(tmp_path: Path) -> None:
    writer = MMDBWriter(ip_version=4)
    writer.insert_network(IPSet(["8.8.4.0/24"]), {"country": {"iso_code": "US"}})
    path = tmp_path / "country.mmdb"
    writer.to_db_file(str(path))

    lookup = country_database(path)

    assert (lookup("8.8.4.4"), lookup("2a00:1450::1")) == ("US", "??")


def test_without_a_file_every_country_is_unknown(tmp_path: Path) -> None:
    assert country_database(tmp_path / "none.mmdb")("8.8.4.4") == "??"
