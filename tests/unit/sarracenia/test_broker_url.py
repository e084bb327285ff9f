"""Broker URLs of sr3's credentials.conf and of its configurations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.sarracenia.broker_url import EXAMPLE, BrokerAccount, InvalidBrokerUrl
from signalbox.sarracenia.rights.names import parse_user_name

KEY_ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
KEY = f"{KEY_ID}%3AwJalrXUtnFEMI%2FK7MDENG%2BbPxRfiCYEXAMPLEKEY"
ALPHANUMERIC = st.characters(codec="ascii", categories=["L", "N"])


def test_a_url_of_aws_contains_region_stage_and_key():
    broker = BrokerAccount.parse(f"amqpsqs://alice:{KEY}@sqs.ca-central-1.amazonaws.com/weather")

    assert broker == BrokerAccount(
        parse_user_name("alice"), "sqs.ca-central-1.amazonaws.com", "weather", KEY_ID, SECRET
    )
    assert broker.region == "ca-central-1"
    assert broker.endpoint_url == "https://sqs.ca-central-1.amazonaws.com"


def test_a_loopback_url_addresses_the_emulator():
    broker = BrokerAccount.parse(f"amqpsqs://alice:{KEY}@localhost:4566/")

    assert (broker.endpoint_url, broker.region, broker.stage) == ("http://localhost:4566", "us-east-1", "signalbox")


def test_the_emulators_region_is_only_in_the_url_with_the_key():
    broker = BrokerAccount(parse_user_name("alice"), "localhost:4566", "signalbox", KEY_ID, SECRET, "eu-west-1")

    assert broker.url_with_key == f"amqpsqs://alice:{KEY}@localhost:4566/signalbox?region=eu-west-1"
    assert broker.url == "amqpsqs://alice@localhost:4566/signalbox"
    assert BrokerAccount.parse(broker.url_with_key).region == "eu-west-1"


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("vpce-1-2.sqs.us-east-1.vpce.amazonaws.com", "us-east-1"),
        ("sqs.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("sqs-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("sqs.eu-west-1.api.aws", "eu-west-1"),
    ],
)
def test_other_sqs_endpoints_contain_their_region(host, region):
    broker = BrokerAccount.parse(f"amqpsqs://alice:{KEY}@{host}/signalbox")

    assert (broker.region, broker.endpoint_url) == (region, f"https://{host}")


def test_other_hosts_are_called_over_https_only():
    assert BrokerAccount.parse(f"amqpsqs://alice:{KEY}@sqs.eu-west-1.example.com:8080").endpoint_url.startswith(
        "https://"
    )


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"amqps://alice:{KEY}@localhost/", "scheme 'amqpsqs'"),
        ("amqpsqs://alice@localhost/", "access key's id and secret"),
        ("amqpsqs://alice:only@localhost/", "access key's id and secret"),
        (f"amqpsqs://al_ice:{KEY}@localhost/", "name of a user"),
        (f"amqpsqs://:{KEY}@localhost/", "name of a user"),
        (f"amqpsqs://alice:{KEY}@example.com/", "expected the host"),
        (f"amqpsqs://alice:{KEY}@sqs.amazonaws/", "expected the host"),
        (f"amqpsqs://alice:{KEY}@localhost/a/b", "stage as the path"),
        (f"amqpsqs://alice:{KEY}@/signalbox", "expected the host"),
    ],
)
def test_an_invalid_url_is_refused_without_quoting_the_key(url, problem):
    with pytest.raises(InvalidBrokerUrl) as raised:
        BrokerAccount.parse(url)

    assert problem in str(raised.value)
    assert EXAMPLE in str(raised.value)
    assert SECRET not in str(raised.value)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "place", ["alice:ID%3A{}@localhost", "alice:{}@localhost", "{}@localhost", "ID:{}", "localhost/{}"]
)
@pytest.mark.parametrize("character", ["/", "?", "#", "[", "]", "\u2100"])
def test_no_part_of_a_secret_that_is_not_encoded_is_quoted(place, character):
    secret = f"wJalrXUt{character}FEMI{character}K7MDENG"

    with pytest.raises(InvalidBrokerUrl) as raised:
        BrokerAccount.parse(f"amqpsqs://{place.format(secret)}")

    shown = str(raised.value).lower()
    assert not any(part in shown for part in ("wjalrxut", "femi", "k7mdeng"))
    assert raised.value.__cause__ is None


def test_all_problems_are_reported_at_once():
    with pytest.raises(InvalidBrokerUrl, match=r"scheme.*host.*stage.*key.*user"):
        BrokerAccount.parse("http://:x@nowhere/a/b")


def test_the_url_for_configurations_contains_no_key():
    broker = BrokerAccount.parse(f"amqpsqs://alice:{KEY}@sqs.eu-west-1.amazonaws.com/weather")

    assert broker.url == "amqpsqs://alice@sqs.eu-west-1.amazonaws.com/weather"
    assert SECRET not in repr(broker)


@given(
    st.text(ALPHANUMERIC, min_size=1),
    st.text(st.characters(codec="utf-8"), min_size=1),
    st.sampled_from(["localhost:4566", "127.0.0.1", "sqs.eu-west-1.amazonaws.com"]),
)
def test_a_url_with_its_key_round_trips(key_id, secret, host):
    broker = BrokerAccount(parse_user_name("alice-1"), host, "my-stage", key_id, secret)

    assert BrokerAccount.parse(broker.url_with_key) == broker
