"""The lines that configure Tor for a stage."""

import pytest

from signalbox.rendezvous.wire.bridge_line import MOST_ARGUMENT_BYTES, STUN_SERVERS, bridge_lines
from signalbox.rendezvous.wire.bridges import DEFAULT_FINGERPRINT, Fingerprint

QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/snowflake-broker"
KEY = "e" * 152  # the length of an encoded key


def arguments(line: str) -> list[str]:
    """Return the arguments of a line of Tor's configuration: what follows the fingerprint."""
    assert line.split()[:2] == ["Bridge", "snowflake"]
    return line.split()[4:]


def test_a_line_has_the_bridge_the_queue_the_key_and_stun_servers() -> None:
    (line,) = bridge_lines([DEFAULT_FINGERPRINT], queue_url=QUEUE, sqscreds=KEY)

    assert line.startswith(f"Bridge snowflake 192.0.2.5:80 {DEFAULT_FINGERPRINT} ")
    assert arguments(line)[:3] == [f"fingerprint={DEFAULT_FINGERPRINT}", f"sqsqueue={QUEUE}", f"sqscreds={KEY}"]
    assert arguments(line)[3].startswith(f"ice={STUN_SERVERS[0]},{STUN_SERVERS[1]},{STUN_SERVERS[2]}")


@pytest.mark.parametrize("queue_length", range(60, 140))
@pytest.mark.parametrize("fingerprint", [DEFAULT_FINGERPRINT, Fingerprint("A" * 64)], ids=["sha1", "sha256"])
def test_tor_takes_the_arguments_of_every_line(queue_length: int, fingerprint: Fingerprint) -> None:
    (line,) = bridge_lines([fingerprint], queue_url="q" * queue_length, sqscreds=KEY)

    # Tor joins them by semicolons (pt_stringify_socks_args).
    assert len(";".join(arguments(line))) <= MOST_ARGUMENT_BYTES
    assert arguments(line)[-1].startswith("ice=stun:")


def test_the_servers_that_do_not_fit_are_left_out() -> None:
    (line,) = bridge_lines([DEFAULT_FINGERPRINT], queue_url=QUEUE, sqscreds=KEY, stun_servers=["stun:a", "s" * 500])
    (without,) = bridge_lines([DEFAULT_FINGERPRINT], queue_url=QUEUE, sqscreds=KEY, stun_servers=["s" * 500])

    assert arguments(line)[-1] == "ice=stun:a"
    assert "ice=" not in without


def test_each_bridge_has_a_line_with_an_address_of_its_own() -> None:
    lines = bridge_lines([Fingerprint(letter * 40) for letter in "ABC"], queue_url=QUEUE, sqscreds=KEY)

    assert [line.split()[2] for line in lines] == ["192.0.2.5:80", "192.0.2.6:80", "192.0.2.7:80"]
