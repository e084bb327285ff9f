"""The template of a stage with peers: the variable of its functions, and what they may do in other regions."""

import pytest

from signalbox.aws.rendezvous.announcements import _key as announcement_key
from signalbox.aws.rendezvous.offers import _key as offer_key
from signalbox.rendezvous.rules.peer_address import PATTERN, PeerAddress
from signalbox.rendezvous.rules.states import ClientId
from stacks.grants.peers import ANNOUNCED, OFFERS
from stacks.settings.context import InvalidConfig, read_config
from stacks.settings.peers import PEER, RendezvousPeer
from tests.infrastructure.templates import as_list, templates

ADDRESS = PeerAddress("eu-west-1", "broker-eu", "their-table", "1234-abcd", "their-broker", "their-client-")
PEERS = f"{ADDRESS},us-east-1:broker-us:table:5678:snowflake-broker:snowflake-client-"
THEIRS = "arn:<Partition>:{}:eu-west-1:<AccountId>:{}"
TABLE = THEIRS.format("dynamodb", "table/their-table")
KEY = THEIRS.format("kms", "key/1234-abcd")


@pytest.fixture(scope="module")
def sharing():
    return templates(rendezvous_peers=PEERS)


def test_the_functions_that_share_offers_have_the_peers(sharing):
    variables = {
        name: function["Properties"]["Environment"]["Variables"].get("RENDEZVOUS_PEERS")
        for name, function in sharing.every("AWS::Lambda::Function").items()
    }

    assert {name for name, peers in variables.items() if peers == PEERS} == {
        f"Rendezvous/{name}" for name in ("Offer", "Poll", "Answer", "Client")
    }


def test_a_stage_without_peers_has_neither_the_variable_nor_a_permission_elsewhere(stage):
    functions = stage.every("AWS::Lambda::Function").values()

    assert all("RENDEZVOUS_PEERS" not in one["Properties"]["Environment"]["Variables"] for one in functions)
    assert "RendezvousPeers" not in stage.stage["Outputs"]


def test_the_functions_may_do_only_this_at_a_peer(sharing):
    found = sorted(
        (role, action, sharing.text(resource), str(statement.get("Condition", "")))
        for role, statement in sharing.statements()
        for resource in as_list(statement["Resource"])
        if resource != "*" and ":eu-west-1:" in sharing.text(resource)
        for action in as_list(statement["Action"])
    )

    def of(role, action, resource, condition=""):
        return (f"Rendezvous/{role}Role/DefaultPolicy", action, resource, condition)

    def items(keys):
        return str({"ForAllValues:StringLike": {"dynamodb:LeadingKeys": keys}})

    through = str({"StringEquals": {"kms:ViaService": "dynamodb.eu-west-1.amazonaws.com"}})
    assert found == sorted(
        [
            *(of(role, "dynamodb:PutItem", TABLE, items("announced#*")) for role in ("Offer", "Client")),
            *(of(role, "dynamodb:Query", TABLE, items("presence")) for role in ("Offer", "Client")),
            of("Poll", "dynamodb:GetItem", TABLE, items("offer#*")),
            of("Poll", "dynamodb:UpdateItem", TABLE, items("offer#*")),
            of("Answer", "dynamodb:UpdateItem", TABLE, items("offer#*")),
            of("Answer", "sqs:SendMessage", THEIRS.format("sqs", "their-client-*")),
            of("Answer", "sqs:DeleteMessage", THEIRS.format("sqs", "their-broker")),
            *(
                of(role, f"kms:{action}", KEY, through)
                for role in ("Offer", "Poll", "Answer", "Client")
                for action in ("Decrypt", "GenerateDataKey")
            ),
        ]
    )


def test_the_permissions_name_the_keys_of_the_adapters():
    assert str(announcement_key(ClientId("c"))["pk"]).startswith(ANNOUNCED.rstrip("*"))
    assert str(offer_key(ClientId("c"))["pk"]).startswith(OFFERS.rstrip("*"))


def test_the_setting_has_the_form_of_the_address_that_a_stage_shows(sharing):
    assert PEER == PATTERN
    assert RendezvousPeer._fields == tuple(PeerAddress.__dataclass_fields__)
    shown = sharing.stage["Outputs"]["RendezvousPeer"]["Value"]
    parts = [part if isinstance(part, str) else "x" for part in shown["Fn::Join"][1]]
    assert PeerAddress.parse("".join(parts)).stage == "signalbox"
    assert sharing.stage["Outputs"]["RendezvousPeers"]["Value"] == PEERS


@pytest.mark.parametrize(
    ("setting", "problem"),
    [("eu-west-1", "rendezvous_peers must match"), (f"{ADDRESS},{ADDRESS}", "several stages in 'eu-west-1'")],
)
def test_a_wrong_setting_is_refused(setting, problem):
    with pytest.raises(InvalidConfig, match=problem):
        read_config({"rendezvous_peers": setting})
