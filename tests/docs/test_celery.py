"""The page about Celery has the results of kombu's and Celery's tests, and the reason of each that fails here alone."""

import json

from tests.docs import celery


def test_the_page_has_the_results_and_the_reasons():
    text = celery.PAGE.read_text()
    kept = json.loads(celery.KEPT.read_text())

    assert celery.page(text) == text
    for found in kept.values():
        passed = sum(counts[celery.RABBITMQ][0] for counts in found["files"].values())
        assert len(found["missing"]) <= 0.05 * passed
        for name in found["missing"]:
            assert f"`{name.partition('::')[2].partition('[')[0]}`" in text
