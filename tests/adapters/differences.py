"""Where ElasticMQ differs from AWS, by test: these tests are run there, too, and must fail for as long as it does.

DynamoDB Local has no entry: it behaves as the tests expect of AWS.
"""

ATTRIBUTES = (
    "ElasticMQ accepts and does not keep Policy, KmsMasterKeyId, SqsManagedSseEnabled, MessageRetentionPeriod, "
    "DeduplicationScope and FifoThroughputLimit: it does not return them, refuses to set them, and a queue that is "
    "created again with them counts as changed"
)
CODES = (
    "ElasticMQ omits the header x-amzn-query-error, from which an SDK takes the error code "
    "AWS.SimpleQueueService.NonExistentQueue"
)
MAPPINGS = "Lambda is moto's here, which creates event source mappings of moto's own queues only"
DIFFERENCES: dict[str, str] = {
    "exchange/test_queues.py::test_a_queue_is_made_with_its_dead_letter_queue": ATTRIBUTES,
    "exchange/test_queues.py::test_an_ordered_exchange_has_queues_that_keep_order_by_key": ATTRIBUTES,
    "exchange/test_queues.py::test_both_are_encrypted_and_take_nothing_without_tls": ATTRIBUTES,
    "exchange/test_queues.py::test_made_again_a_queue_has_the_new_settings_and_its_messages": ATTRIBUTES,
    "rendezvous/test_queues.py::test_a_client_queue_has_its_tags_its_policy_and_a_lease": ATTRIBUTES,
    "rendezvous/test_queues.py::test_a_deleted_broker_queue_is_created_again_with_its_attributes": ATTRIBUTES,
    "rendezvous/test_queues.py::test_a_repeated_offer_gets_the_same_client_queue": ATTRIBUTES,
    "splitting/test_queues.py::test_a_temporary_queue_has_the_settings_of_its_original": ATTRIBUTES,
    "splitting/test_queues.py::test_a_deleted_original_is_a_refusal": CODES,
    "exchange/test_connections.py::test_a_failed_listing_can_be_retried": MAPPINGS,
    "exchange/test_connections.py::test_a_mapping_of_others_is_kept": MAPPINGS,
    "exchange/test_connections.py::test_a_mapping_of_this_stage_is_deleted": MAPPINGS,
    "exchange/test_connections.py::test_a_mapping_that_is_gone_counts_as_deleted": MAPPINGS,
    "exchange/test_connections.py::test_a_refused_deletion_names_the_queue": MAPPINGS,
    "exchange/test_connections.py::test_a_user_gets_the_reader_and_dead_letters_of_the_administrators": MAPPINGS,
    "exchange/test_connections.py::test_a_user_whose_queue_is_gone_is_refused": MAPPINGS,
    "exchange/test_connections.py::test_all_mappings_of_queues_are_listed_with_their_functions": MAPPINGS,
    "exchange/test_connections.py::test_other_sources_and_mappings_in_deletion_are_left_out": MAPPINGS,
    "exchange/test_route_mappings.py::test_a_disabled_mapping_is_enabled_again": MAPPINGS,
    "exchange/test_route_mappings.py::test_a_fifo_queue_is_connected_in_the_same_way": MAPPINGS,
    "exchange/test_route_mappings.py::test_an_exchange_is_connected_once": MAPPINGS,
    "exchange/test_route_mappings.py::test_one_that_is_being_deleted_is_no_connection": MAPPINGS,
    "exchange/test_route_mappings.py::test_only_the_exchanges_own_mapping_is_deleted": MAPPINGS,
    "exchange/test_users.py::*": MAPPINGS,
    "splitting/test_forwarders.py::test_a_forwarder_is_a_mapping_with_partial_batch_responses": MAPPINGS,
    "splitting/test_forwarders.py::test_a_forwarder_is_deleted": MAPPINGS,
    "splitting/test_forwarders.py::test_forwarding_is_started_once_stopped_and_started_again": MAPPINGS,
    "splitting/test_forwarders.py::test_the_forwarder_of_an_earlier_deployment_is_replaced": MAPPINGS,
    "splitting/test_forwarders.py::test_the_mapping_of_the_deployed_consumer_is_not_changed": MAPPINGS,
}


def difference(file: str, test: str) -> str | None:
    """Return the reason why a test fails on ElasticMQ, or None; the file's path begins below tests/adapters."""
    return DIFFERENCES.get(f"{file}::{test}") or DIFFERENCES.get(f"{file}::*")
