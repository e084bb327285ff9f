"""The seconds that a run waits for what AWS does eventually, from its documentation; only a failure takes so long."""

# https://docs.aws.amazon.com/lambda/latest/dg/msk-starting-positions.html: «During event source mapping creation, it
# may take several minutes to start polling», and up to 90 seconds after an update. For SQS, AWS names no time.
MAPPING_SECONDS, MAPPING_UPDATE_SECONDS = 300.0, 90.0
# https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html: changes are eventually consistent, without a time.
IAM_SECONDS = 180.0
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html: up to 60 s, and 15
# minutes for the retention; a new queue is usable after at least one second.
QUEUE_SECONDS = 60.0
# https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html: a start may take 10 s, and a function
# that exceeds them starts again with its call. Five functions of live start one after the other.
START_SECONDS = 120.0
# A client waits 6 s for its queue and 108 s for its reply; then the next offer shows whether the functions run.
FIRST_OFFER_SECONDS = START_SECONDS + 114.0
# A message whose function failed, up to three times, comes again after its queue's visibility time-out, at most 45 s;
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues.html names no time.
RECEIVE_SECONDS = 150.0
# A split that ends waits for empty queues and finished calls, 81 to 97 s by its own settings, and the mapping of its
# consumer is updated before and after.
SPLIT_END_SECONDS = 97.0 + 2 * MAPPING_UPDATE_SECONDS
# https://docs.aws.amazon.com/firehose/latest/dev/basic-deliver.html: the buffer's interval, here a minute, is a hint;
# Firehose raises the buffer's size when deliveries fall behind, and repeats failed ones. An interval is at most 900 s.
LAKE_SECONDS = 900.0
