"""Where ElasticMQ differs from AWS, by test: these tests are run there, too, and must fail for as long as it does.

DynamoDB Local has no entry: it behaves as the tests expect of AWS.
"""

ATTRIBUTES = (
    "ElasticMQ accepts and does not keep Policy, KmsMasterKeyId, SqsManagedSseEnabled, MessageRetentionPeriod, "
    "MaximumMessageSize, DeduplicationScope and FifoThroughputLimit: it does not return them, refuses to set them, and "
    "a queue that is created again with them counts as changed, or not"
)
KEYS = "a user's control queue has the key of the administrators' queue, which ElasticMQ does not keep"
CODES = (
    "ElasticMQ omits the header x-amzn-query-error, from which an SDK takes the error code "
    "AWS.SimpleQueueService.NonExistentQueue"
)
DIFFERENCES: dict[str, str] = {
    "exchange/test_connections.py::test_a_user_gets_the_reader_of_the_administrators_and_no_dead_letter_queue": KEYS,
    "exchange/test_queues.py::test_a_queue_is_made_with_its_dead_letter_queue": ATTRIBUTES,
    "exchange/test_queues.py::test_an_ordered_exchange_has_queues_that_keep_order_by_key": ATTRIBUTES,
    "exchange/test_queues.py::test_a_queue_names_its_key": ATTRIBUTES,
    "exchange/test_queues.py::test_both_are_encrypted_and_take_nothing_without_tls": ATTRIBUTES,
    "exchange/test_queues.py::test_made_again_a_queue_has_the_new_settings_and_its_messages": ATTRIBUTES,
    "exchange/test_queues.py::test_settings_of_a_queue_on_record_change_without_a_call_for_tags": ATTRIBUTES,
    "exchange/test_users.py::test_a_boundary_of_the_stage_bounds_a_new_user": KEYS,
    "exchange/test_users.py::test_a_control_queue_follows_the_administrators": KEYS,
    "exchange/test_users.py::test_a_foreign_identity_is_not_changed[make]": KEYS,
    "exchange/test_users.py::test_a_foreign_queue_is_not_deleted": KEYS,
    "exchange/test_users.py::test_a_new_key_leaves_the_one_before_it_in_force": KEYS,
    "exchange/test_users.py::test_a_registered_user_has_an_identity_and_a_record": KEYS,
    "exchange/test_users.py::test_a_secret_is_not_in_the_representation_of_a_key": KEYS,
    "exchange/test_users.py::test_a_user_has_a_key_or_none": KEYS,
    "exchange/test_users.py::test_a_user_has_a_reply_queue_whose_messages_expire_soon": KEYS,
    "exchange/test_users.py::test_a_user_has_an_identity_with_a_policy_and_no_key": KEYS,
    "exchange/test_users.py::test_a_user_registered_again_has_another_role_and_the_same_age_and_identity": KEYS,
    "exchange/test_users.py::test_a_users_control_queue_is_like_that_of_the_administrators": KEYS,
    "exchange/test_users.py::test_made_again_a_user_has_another_role_and_nothing_twice": KEYS,
    "exchange/test_users.py::test_removing_a_user_removes_everything": KEYS,
    "exchange/test_users.py::test_the_same_function_reads_it_with_two_commands_at_a_time": KEYS,
    "exchange/test_users.py::test_without_anything_that_reads_commands_there_are_no_users": KEYS,
    "rendezvous/test_queues.py::test_a_client_queue_has_its_tags_and_its_policy": ATTRIBUTES,
    "rendezvous/test_queues.py::test_a_client_id_that_comes_again_makes_no_call_about_tags": ATTRIBUTES,
    "rendezvous/test_queues.py::test_a_deleted_broker_queue_is_created_again_with_its_attributes": ATTRIBUTES,
    "rendezvous/test_queues.py::test_a_redelivered_offer_gets_the_same_client_queue_and_a_copy_does_not": ATTRIBUTES,
    "rendezvous/test_queues.py::test_an_offer_whose_client_queue_is_deleted_at_that_moment_comes_again": ATTRIBUTES,
    "rendezvous/test_queues.py::test_old_queues_of_the_stage_are_deleted": ATTRIBUTES,
    "splitting/test_queues.py::test_a_deleted_original_is_a_refusal": CODES,
    "splitting/test_queues.py::test_a_temporary_queue_has_the_settings_of_its_original": ATTRIBUTES,
}


def difference(file: str, name: str) -> str | None:
    """Return the reason why a test fails on ElasticMQ, or None; the file's path begins below tests/adapters.

    An entry without parameters is of a test with all of its parameters; `java` is the first in the name of a test.
    """
    test, _, parameters = name.removesuffix("]").partition("[")
    own = parameters.removeprefix("java").removeprefix("-")
    return DIFFERENCES.get(f"{file}::{test}[{own}]") or DIFFERENCES.get(f"{file}::{test}")
