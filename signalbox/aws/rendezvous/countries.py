"""Country lookup in a MaxMind database file, if a stage has one."""

from pathlib import Path
from typing import TYPE_CHECKING

from signalbox.rendezvous.reporting.counters import UNKNOWN_COUNTRY

if TYPE_CHECKING:
    from signalbox.rendezvous.reporting.client_address import CountryLookup


def country_database(path: Path) -> "CountryLookup":
    """Return the country lookup of a database file; without the file every country is `??`."""
    if not path.exists():
        return lambda _address: UNKNOWN_COUNTRY
    import maxminddb  # noqa: PLC0415 - most stages have no database and save its import at cold start

    reader = maxminddb.open_database(path)
    has_ipv6 = reader.metadata().ip_version == 6  # noqa: PLR2004 (an IP version is no magic)

    def country_lookup(address: str | None) -> str:
        record = reader.get(address) if address and (has_ipv6 or ":" not in address) else None
        country = record.get("country") if isinstance(record, dict) else None
        code = country.get("iso_code") if isinstance(country, dict) else None
        return str(code) if code else UNKNOWN_COUNTRY

    return country_lookup
