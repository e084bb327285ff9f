"""The deployed function's settings, as Lambda's API returns them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.clients.splitting.handler.deployed import DeployedFunction
from signalbox.clients.splitting.handler.settings import FunctionSettings

ARN = "arn:aws:lambda:us-east-1:123456789012:function:meme-app"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:memes"
OTHERWISE = FunctionSettings("meme-app", "arn:assumed")
PLAIN = {"FunctionName": "meme-app", "FunctionArn": ARN, "Timeout": 42, "MemorySize": 512}


@dataclass
class Functions:
    """Lambda's API with fixed replies."""

    configuration: Mapping[str, Any] = field(default_factory=lambda: PLAIN)
    mappings: list[Mapping[str, Any]] = field(default_factory=list)
    whole: Mapping[str, Any] = field(default_factory=dict)
    is_denied: bool = False

    def _check(self, operation: str) -> None:
        if self.is_denied:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, operation)

    def get_function_configuration(self, **call: str) -> Mapping[str, Any]:
        self._check("GetFunctionConfiguration")
        return self.configuration

    def get_event_source_mapping(self, **call: str) -> Mapping[str, Any]:
        return self.whole

    def get_paginator(self, name: str) -> "Functions":
        return self

    def paginate(self, **call: str) -> Iterator[Mapping[str, Any]]:
        self._check("ListEventSourceMappings")
        assert call == {"EventSourceArn": QUEUE}
        yield {"EventSourceMappings": self.mappings}


def function(functions: Functions, name: str = "meme-app") -> tuple[DeployedFunction, list[str]]:
    problems: list[str] = []
    return DeployedFunction(functions, name, problems.append), problems


def test_settings_are_the_deployed_ones():
    configuration = {
        **PLAIN,
        "Version": "7",
        "LoggingConfig": {"LogGroup": "/memes"},
        "Environment": {"Variables": {"TABLE": "memes"}},
    }

    settings = function(Functions(configuration))[0].settings(OTHERWISE)

    assert settings == FunctionSettings(
        "meme-app", ARN, "7", timedelta(seconds=42), memory_mb=512, log_group="/memes", environment={"TABLE": "memes"}
    )


def test_variables_that_cannot_be_decrypted_are_reported():
    environment = {"Error": {"ErrorCode": "AccessDeniedException", "Message": "no right to decrypt"}}
    deployed, problems = function(Functions({**PLAIN, "Environment": environment}))

    assert deployed.settings(OTHERWISE).environment == {}
    assert problems == ["the variables of function 'meme-app' cannot be read: no right to decrypt"]


def test_without_permission_the_assumed_settings_stay_and_the_reason_is_reported():
    deployed, problems = function(Functions(is_denied=True))

    assert deployed.settings(OTHERWISE) is OTHERWISE
    assert deployed.mapping(QUEUE) is None
    assert all("AccessDeniedException" in problem for problem in problems)
    assert len(problems) == 2


@pytest.mark.parametrize(("name", "size"), [("meme-app", 1), ("meme-app:live", 2), ("meme-app:other", None)])
def test_the_mapping_is_that_of_the_function_or_its_alias(name, size):
    mappings = [
        {"UUID": "0", "FunctionArn": f"{ARN}-two", "BatchSize": 3},
        {"UUID": "1", "FunctionArn": ARN, "BatchSize": 1},
        {"UUID": "2", "FunctionArn": f"{ARN}:live", "BatchSize": 2},
    ]

    found = function(Functions(mappings=mappings), name)[0].mapping(QUEUE)

    assert (found and found.batch_size) == size


def test_a_function_without_a_mapping_of_its_own_uses_that_of_an_alias():
    mappings = [{"UUID": "2", "FunctionArn": f"{ARN}:live", "BatchSize": 2}]

    found = function(Functions(mappings=mappings))[0].mapping(QUEUE)

    assert found is not None
    assert found.batch_size == 2


def test_encrypted_filters_are_read_from_the_mapping_itself():
    whole = {"UUID": "1", "FilterCriteria": {"Filters": [{"Pattern": '{"body": ["x"]}'}]}}
    listed = [{"UUID": "1", "FunctionArn": ARN, "KMSKeyArn": "arn:aws:kms:us-east-1:123456789012:key/1"}]
    deployed, problems = function(Functions(mappings=listed, whole=whole))

    found = deployed.mapping(QUEUE)

    assert found is not None
    assert found.filters.patterns == ({"body": ["x"]},)
    assert problems == []


def test_filters_that_cannot_be_decrypted_are_reported():
    whole = {"UUID": "1", "FilterCriteriaError": {"Message": "no right to decrypt"}}
    listed = [{"UUID": "1", "FunctionArn": ARN, "KMSKeyArn": "arn:aws:kms:us-east-1:123456789012:key/1"}]
    deployed, problems = function(Functions(mappings=listed, whole=whole))

    assert deployed.mapping(QUEUE) is not None
    assert problems == ["the filters of mapping '1' cannot be read: no right to decrypt"]
