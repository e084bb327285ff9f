"""Tests that the code parses the registry and the session files of the pages."""

import json

import yaml

from signalbox.splitting.consumers.registry_file import parse_registries
from signalbox.splitting.model.session_config import QueueId, parse_mirrord_file
from tests.docs.markdown import ROOT, blocks
from tests.unit.splitting.forwarding.languages import PlainLanguages

PAGE, README = ROOT / "docs" / "splitting.md", ROOT / "README.md"


def test_the_registry_of_the_page_is_valid():
    (block,) = [block for block in blocks(PAGE) if block.kind == "registry"]

    (registry,) = parse_registries(yaml.safe_load_all(block.code), PlainLanguages())

    assert [str(registry.target), *(queue.queue_id for queue in registry.queues)] == ["lambda/meme-app", "orders"]


def test_the_sessions_of_the_page_are_valid_and_the_first_names_the_queue_of_its_registry():
    found = [json.loads(block.code) for block in blocks(PAGE) if block.language == "json"]

    first, exclusive, by_metadata = (parse_mirrord_file(one, PlainLanguages()) for one in found)
    assert first.named_queues == ("orders",)
    assert exclusive.is_exclusive(QueueId("orders"))
    assert by_metadata.uses_metadata(QueueId("uploads"))


def test_the_session_of_the_readme_requests_any_queue():
    (block,) = [block for block in blocks(README) if block.language == "json"]

    assert parse_mirrord_file(json.loads(block.code), PlainLanguages()).named_queues == ()
