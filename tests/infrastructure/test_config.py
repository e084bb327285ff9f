"""Settings: accepted values, refused values and the texts of problems."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import botocore.session
import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from stacks.settings.checks import CHECKS, UNTRIED_REGIONS
from stacks.settings.choices import LOG_RETENTION_DAYS
from stacks.settings.clusters import KubernetesClusters
from stacks.settings.config import Config, settings
from stacks.settings.context import InvalidConfig, read_config
from stacks.shared.logs import RETENTION

QUEUE = "arn:aws:sqs:eu-central-1:123456789012:their-queue"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555"

WORDS = "must be words of rendezvous, splitting, exchange, live, history, separated by commas"


def problems(**context: object) -> tuple[str, ...]:
    with pytest.raises(InvalidConfig) as refused:
        read_config(context)
    return refused.value.problems


@pytest.mark.parametrize("partition", botocore.session.get_session().get_available_partitions())
def test_regions_of_one_partition_only_are_accepted(partition):
    regions = botocore.session.get_session().get_available_regions("sqs", partition)

    refused = {region for region in regions if region.startswith(UNTRIED_REGIONS)}

    assert refused == (set() if partition == "aws" else set(regions))


def test_an_empty_context_gives_the_default_configuration():
    assert read_config({}) == Config()


def test_a_configuration_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Config().stage = "other"


def test_text_values_of_the_command_line_equal_typed_values_of_the_file():
    typed = read_config({"poll_budget_usd": 5, "local": True, "region": None, "stage": "trial"})
    text = read_config({"poll_budget_usd": "5", "local": "true", "region": "", "stage": "trial"})

    assert text == typed == Config(poll_budget_usd=5, local=True, stage="trial")


def test_context_keys_of_cdk_are_ignored():
    context = {"aws:cdk:bundling-stacks": [], "@aws-cdk/core:checkSecretUsage": True, "acknowledged-issue-numbers": []}

    assert read_config(context) == Config()


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("broker_queue", "broker_queue_arn"),
        ("offer_patience", "offer_patience_seconds"),
        ("offer-patience-seconds", "offer_patience_seconds"),
        ("Stage", "stage"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key, nearest):
    (problem,) = problems(**{key: "1"})

    assert problem == f"{key!r} is not a setting; did you mean {nearest!r}?"


def test_an_unknown_key_that_is_near_to_none_is_refused_with_the_page_of_settings():
    assert problems(x="1") == ("'x' is not a setting: see docs/settings.md",)


def test_all_problems_are_reported_together():
    found = problems(stag="x", poll_budget_usd=99_999, log_retention_days=31, broker_queue_retention_seconds=60)

    assert found == (
        "'stag' is not a setting; did you mean 'stage'?",
        f"log_retention_days must be one of {', '.join(map(str, LOG_RETENTION_DAYS))}, not 31",
        "poll_budget_usd must be at most 10000 USD a month, not 99999",
        (
            "broker_queue_retention_seconds must be at least 150 s with offer_patience_seconds 30, "
            "or offers expire before their clients get a reply; it is 60"
        ),
    )


@pytest.mark.parametrize(
    ("context", "problem"),
    [
        ({"local": "yes"}, "local must be true or false, not 'yes'"),
        ({"poll_budget_usd": True}, "poll_budget_usd must be a whole number, not True"),
        ({"poll_budget_usd": 1.5}, "poll_budget_usd must be a whole number, not 1.5"),
        ({"poll_budget_usd": ""}, "poll_budget_usd must be a whole number, not ''"),
        ({"poll_budget_usd": -1}, "poll_budget_usd must be at least 1 USD a month, not -1"),
        ({"offer_patience_seconds": 11}, "offer_patience_seconds must be at least 12 s, not 11"),
        ({"stage": 7}, "stage must be text, not 7"),
        (
            {"stage": "x_y"},
            "stage must be 1 to 30 lower-case letters, digits and '-', a letter first and no '-' last, not 'x_y'",
        ),
        ({"rendezvous_doors": "url,"}, "rendezvous_doors must be words of url, api, separated by commas, not ''"),
        ({"capabilities": "exchange, history"}, f"capabilities {WORDS}, not ' history'; did you mean 'history'?"),
        ({"kept_capabilities": "Histroy"}, f"kept_capabilities {WORDS}, not 'Histroy'; did you mean 'history'?"),
        ({"broker_queue_name": "a.fifo"}, "broker_queue_name must match [A-Za-z0-9_-]{1,80}, not 'a.fifo'"),
        ({"bridge_list_file": "/nowhere"}, "bridge_list_file names no file: '/nowhere'"),
        ({"bridge_list_file": "x" * 5000}, f"bridge_list_file names no file: '{'x' * 100}': File name too long"),
        (
            {"bridge_list_file": "~no-user/x"},
            "bridge_list_file names no file: '~no-user/x': Could not determine home directory.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_an_invalid_value_is_refused(context, problem):
    assert problems(**context) == (problem,)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"offer_patience_seconds": 240}, "broker_queue_retention_seconds must be at least 360 s"),
        (
            {"client_queue_lease_seconds": 20},
            "client_queue_lease_seconds must be at least offer_patience_seconds (30 s)",
        ),
        (
            {"stray_queue_age_seconds": 60},
            "stray_queue_age_seconds must be at least client_queue_lease_seconds (120 s)",
        ),
        ({"broker_queue_name": "snowflake-client-x"}, "would open the broker queue 'snowflake-client-x'"),
        ({"client_queue_prefix": "snowflake-"}, "would open the broker queue 'snowflake-broker'"),
        ({"client_queue_prefix": "sig"}, "would open the queues of stage 'signalbox'"),
        ({"client_queue_prefix": "signalbox-"}, "would open the queues of stage 'signalbox'"),
        ({"client_queue_prefix": "signalbox-Rendezvous"}, "would open the queues of stage 'signalbox'"),
        ({"client_queue_prefix": "signalbox-split-reply-"}, "would open the queues of stage 'signalbox'"),
        ({"client_queue_prefix": "signalbox-exchange-c"}, "would open the queues of stage 'signalbox'"),
        ({"client_queue_prefix": "signalbox-sp"}, "would open the queues of stage 'signalbox'"),
        (
            {"temporary_queue_prefix": "snowflake-client-x-"},
            "temporary_queue_prefix 'snowflake-client-x-' overlaps with client_queue_prefix: 'snowflake-client-'",
        ),
        ({"temporary_queue_prefix": "snowflake-b"}, "overlaps with the broker queue: 'snowflake-broker'"),
        ({"stage": "mirrord"}, "temporary_queue_prefix 'mirrord-' overlaps with the stage's own: 'mirrord-'"),
        ({"splittable_queues": "orders,mirrord-x"}, "splittable_queues: 'mirrord-x' would open queues of the stage"),
        ({"splittable_queues": "sig*"}, "splittable_queues: 'sig*' would open queues of the stage 'signalbox' itself"),
        ({"splittable_targets": "ecs/prod/mailer"}, "set splittable_target_roles too"),
        ({"route_timeout_seconds": 40}, "route_retry_seconds must be at least route_timeout_seconds (40 s)"),
        ({"stage": "x1"}, "exchange_prefix '': 'x' would open the queues of stage 'x1' itself"),
        ({"exchange_prefix": "signalbox-e"}, "'signalbox-ex' would open the queues of stage 'signalbox' itself"),
        ({"client_queue_prefix": "q_clients-"}, "'q_' overlaps with client_queue_prefix: 'q_clients-'"),
        ({"temporary_queue_prefix": "xtmp-"}, "'x' overlaps with temporary_queue_prefix: 'xtmp-'"),
        ({"broker_queue_name": "x-broker"}, "'x' overlaps with the broker queue: 'x-broker'"),
        ({"broker_queue_key_arn": KEY}, "broker_queue_key_arn is only for an existing queue"),
        ({"region": "cn-north-1"}, "region 'cn-north-1' is in another partition than `aws`"),
        ({"region": "eu-wset-1"}, "region 'eu-wset-1' is unknown to the installed botocore: did you mean 'eu-west-1'?"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_conflicting_values_are_refused(context, words):
    assert words in problems(**context)[0]


REFERENCES = {
    "broker_queue_arn": QUEUE,
    "broker_queue_key_arn": KEY,
    "splittable_queue_key_arns": f"{KEY},{KEY}",
    "alarm_topic_arn": "arn:aws:sns:eu-central-1:123456789012:alarms",
    "asset_key_arn": KEY,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_an_arn_of_another_region_than_the_stage_is_refused(name):
    context = {"broker_queue_arn": QUEUE, name: REFERENCES[name]}

    assert read_config(context)
    assert read_config(context, default_region="eu-central-1")
    for region, default in (("us-east-1", None), (None, "us-east-1"), ("us-east-1", "eu-central-1")):
        with pytest.raises(InvalidConfig) as refused:
            read_config({**context, "region": region}, default_region=default)
        assert any(problem.startswith(f"{name} 'arn:aws:") for problem in refused.value.problems)


@pytest.mark.parametrize("name", REFERENCES)
def test_an_arn_of_another_partition_is_refused(name):
    assert problems(**{name: REFERENCES[name].replace("arn:aws:", "arn:aws-cn:")})[0].startswith(f"{name} must match")


def test_every_setting_that_names_a_file_or_an_arn_has_a_check():
    """A region is checked by itself; the other settings name nothing that exists before the deployment."""
    naming = {
        setting.name
        for setting in settings()
        if setting.kind not in {str, int, bool}
        or any(
            sign in f"{setting.name} {setting.pattern}"
            for sign in ("_arn", "arn:", "_file", "_url", "https:", "mail", "zone")
        )
    }

    assert naming == CHECKS.keys()


def country_database(path: Path, record: object) -> Path:
    writer = MMDBWriter(ip_version=4, database_type="Test")
    writer.insert_network(IPSet(["8.8.4.0/24"]), record)
    writer.to_db_file(str(path))
    return path


def test_a_country_database_is_accepted(tmp_path):
    path = country_database(tmp_path / "a.mmdb", {"country": {"iso_code": "US"}})

    assert read_config({"country_database_file": str(path)}).country_database_file == path


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (lambda whole: b"GeoLite2 is in another file.\n", "is no readable MaxMind database: "),
        (lambda whole: b"", "is no readable MaxMind database: "),
        (lambda whole: whole[: len(whole) // 2], "is no readable MaxMind database: "),
        (lambda whole: whole[len(whole) // 2 :], "is no readable MaxMind database: "),
        (lambda whole: whole.replace(b"country", b"zzzntry"), "has no countries: its type is 'Test'"),
    ],
    ids=["text", "empty", "without-its-end", "without-its-start", "other-records"],
)
def test_a_file_that_is_no_country_database_is_refused(tmp_path, content, problem):
    path = country_database(tmp_path / "a.mmdb", {"country": {"iso_code": "US"}})
    path.write_bytes(content(path.read_bytes()))

    (found,) = problems(country_database_file=str(path))

    assert found.startswith(f"country_database_file {problem}")


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("splittable_queues", "*"),
        ("splittable_queues", "orders,"),
        ("splittable_queues", "orders, bills"),
        ("splittable_queues", "or*ders"),
        ("splittable_targets", "meme-app"),
        ("splittable_targets", "deployment/meme-app"),
        ("splittable_targets", "ecs/mailer"),
        ("splittable_targets", "lambda/*"),
        ("splittable_target_roles", "role/mailer"),
        ("splittable_queue_tag", "split"),
        ("splittable_buckets", "*"),
        ("splittable_buckets", "Uploads"),
        ("splittable_buckets", "up*loads"),
    ],
)
def test_splittable_queues_and_targets_are_full_names_or_prefixes(setting, text):
    (problem,) = problems(**{setting: text})

    assert problem.startswith(f"{setting} must match ")
    assert problem.endswith(f"not {text!r}")


def test_lists_of_names_are_separated_by_commas():
    config = read_config(
        {"splittable_queues": "orders*,bills.fifo,old*.fifo", "splittable_targets": "ssm//a/b,lambda/x*"}
    )

    assert config.queues_to_split == ("orders*", "bills.fifo", "old*.fifo")
    assert config.targets_to_switch == ("ssm//a/b", "lambda/x*")
    assert config.target_roles == ()


def test_the_demo_queues_of_the_local_stage_are_splittable_unless_the_setting_names_others():
    assert read_config({"local": True}).queues_to_split == ("demo-*",)
    assert read_config({"local": True, "splittable_queues": "mine"}).queues_to_split == ("mine",)


def test_client_queues_may_have_a_prefix_of_the_own_stage():
    assert read_config({"client_queue_prefix": "signalbox-client-"}).client_queue_prefix == "signalbox-client-"


def test_exchanges_and_their_queues_may_have_a_prefix_of_the_own_stage():
    assert read_config({"stage": "x1", "exchange_prefix": "x1-"}).exchange_prefix == "x1-"


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        ({}, True),
        ({"local": True}, False),
        ({"local": True, "retain_state": True}, True),
        ({"retain_state": False}, False),
    ],
)
def test_state_is_retained_except_on_the_local_stage_or_by_setting(context, kept):
    assert read_config(context).keeps_state is kept


def test_a_file_is_found_by_its_path(tmp_path):
    bridges = tmp_path / "bridges with space.jsonl"
    bridges.write_text("{}")

    assert read_config({"bridge_list_file": str(bridges)}).bridge_list_file == Path(bridges)


def test_every_setting_has_a_description_and_numbers_have_units():
    for setting in settings():
        assert setting.description.endswith("."), setting.name
        assert setting.kind in {str, int, bool, Path, KubernetesClusters}, setting.name
        assert setting.kind is not int or setting.unit, setting.name


def test_every_default_is_an_accepted_value():
    given = {setting.name: setting.default for setting in settings() if setting.default is not None}

    assert read_config(given) == Config()


def test_log_retention_accepts_exactly_the_days_of_cloudwatch():
    assert tuple(RETENTION) == LOG_RETENTION_DAYS
