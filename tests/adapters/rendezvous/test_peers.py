"""The adapters of a stage with peers, on moto with two regions."""

from dataclasses import replace
from datetime import timedelta

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from signalbox.aws.rendezvous.announcements import DynamoAnnouncements
from signalbox.aws.rendezvous.offers import DynamoOffers
from signalbox.aws.rendezvous.peers import FAILURES, answer_service_of, passes, peers_of
from signalbox.rendezvous.rules.matching import RendezvousPolicy
from signalbox.rendezvous.rules.peer_address import PeerAddress
from signalbox.rendezvous.rules.states import Claimant, ClientId, ForeignOffer, ProxySessionId
from signalbox.rendezvous.wire.proxy import ProxyAnswer
from tests.adapters.rendezvous.test_contract import RECORD
from tests.fakes.aws import make_rendezvous_table
from tests.fakes.rendezvous import START, MemoryClock

HERE, HOME = "us-east-1", "eu-west-1"
ADDRESS = PeerAddress(HOME, "broker-eu", "Rendezvous", "key", "snowflake-broker", "snowflake-client-")
PROXY = Claimant(ProxySessionId("p1"), "webext")
UNTIL = START + timedelta(seconds=5)


@pytest.fixture
def tables(aws, monkeypatch):
    """Return the tables of rendezvous by region."""
    found = {}
    for region in (HOME, HERE):
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        found[region] = make_rendezvous_table()
    return found


@pytest.fixture
def peer(tables):
    (found,) = peers_of([ADDRESS], boto3.client, table=tables[HERE])
    return found


def test_a_claim_is_in_the_home_region_and_its_match_in_the_region_of_the_proxy(tables, peer):
    home, here = DynamoOffers(tables[HOME]), DynamoOffers(tables[HERE])
    home.open(RECORD, replacing=None)

    claimed = peer.offers.claim(RECORD.client_id, proxy=PROXY, now=START, until=UNTIL)

    assert claimed.match is not None
    assert home.find(RECORD.client_id) == claimed.match
    assert here.matched_by(PROXY.sid) == ForeignOffer(RECORD.client_id, HOME).key
    assert home.matched_by(PROXY.sid) is None
    assert here.find(RECORD.client_id) is None


def test_an_announcement_and_the_last_polls_are_in_the_table_of_the_peer(tables, peer):
    peer.announcements.announce(RECORD, home=HERE)
    peer.presence.record_poll(RECORD.nat, now=START)

    assert DynamoAnnouncements(tables[HOME]).take(ForeignOffer(RECORD.client_id, HERE).key, now=START, until=UNTIL)
    assert peer.presence.last_polls() == {RECORD.nat: START}
    assert tables[HERE].scan()["Items"] == []


def test_an_answer_goes_to_the_client_and_deletes_the_offer_in_the_home_region(tables, peer):
    sqs = boto3.client("sqs", region_name=HOME)
    broker = sqs.create_queue(QueueName="snowflake-broker")["QueueUrl"]
    sqs.send_message(QueueUrl=broker, MessageBody="offer")
    (sent,) = sqs.receive_message(QueueUrl=broker)["Messages"]
    client = sqs.create_queue(QueueName="snowflake-client-c1")["QueueUrl"]
    record = replace(RECORD, receipt_handle=sent["ReceiptHandle"], queue_url=client)
    DynamoOffers(tables[HOME]).open(record, replacing=None)
    peer.offers.claim(RECORD.client_id, proxy=PROXY, now=START, until=UNTIL)
    service = answer_service_of(
        ADDRESS,
        boto3.client,
        broker_queue_url=broker.replace(HOME, HERE),
        region=HERE,
        clock=MemoryClock(),
        policy=RendezvousPolicy(),
    )

    answered = service.deliver(RECORD.client_id, ProxyAnswer(PROXY.sid, "sdp"))

    assert answered is not None
    assert [message["Body"] for message in sqs.receive_message(QueueUrl=client)["Messages"]] == ['{"answer":"sdp"}']
    attributes = sqs.get_queue_attributes(QueueUrl=broker, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
    assert service.deliver(ClientId("nobody"), ProxyAnswer(PROXY.sid, "sdp")) is None


def test_a_peer_whose_table_is_missing_fails_as_one_that_is_away(aws):
    (peer,) = peers_of([replace(ADDRESS, table="Other")], boto3.client, table=make_rendezvous_table())

    with pytest.raises(FAILURES):
        peer.presence.last_polls()


@pytest.mark.parametrize(
    ("error", "is_repeated"),
    [
        (ClientError({"Error": {"Code": "ThrottlingException"}}, "PutItem"), True),
        (ClientError({"Error": {"Code": "AccessDeniedException"}}, "PutItem"), False),
        (ConnectTimeoutError(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com"), False),
    ],
)
def test_only_a_call_that_a_peer_responded_to_may_be_repeated_at_once(error, is_repeated):
    assert isinstance(error, FAILURES)
    assert passes(error) is is_repeated


def test_a_call_to_a_region_that_is_away_ends_within_the_time_of_the_function_offer(peer):
    config = peer.offers.table.client.meta.config

    assert config.connect_timeout + config.read_timeout < 3
    assert config.retries["total_max_attempts"] == 1
