"""Questions that AWS's documentation leaves open, which a run asks a stage, and what is wrong after another answer."""

from signalbox.verify.report import Question

TRUST = Question(
    "trust policy of Firehose's role",
    "the delivery stream is ACTIVE",
    "Firehose sends another aws:SourceAccount than its role admits: the stack rolls back at HistoryLake/Events, or no "
    "event reaches the bucket. Remove the condition in stacks/history/lake.py",
)
CREATED_AGAIN = Question(
    "repeated CreateQueue",
    "the same queue for the same text of the policy and the same tags",
    "an offer whose function was killed finds its client's queue taken: its client gets no answer until it asks again",
)
LIBRARIES = Question(
    "libraries of the functions' runtime",
    "boto3, botocore and urllib3 are at least those of lambdas/runtime.in",
    "a function calls what its library does not know: ParamValidationError or ImportError in its log. Add the library "
    "to lambdas/requirements.in",
)
ROUTE = Question(
    "route of a WAMP frame, an array without `action`",
    "$default, so that a session joins",
    "API Gateway does not choose $default for it: no frame reaches the inbox queue, and every connection is closed "
    "after 10 s. Change the route selection expression in stacks/live/websocket_api.py",
)
PAGE = Question(
    "permission of API Gateway to call the function behind `$default`",
    "the live page answers",
    "if the page answers every request with 500, API Gateway names the route otherwise than the function's policy, and "
    "integrationError in its access log says so. Change the permission in stacks/shared/http_api.py",
)
OFFER_START = Question(
    "start and duration of `offer`, compared with the visibility of its queue",
    "the sum is less than the visibility time-out",
    "a first offer is delivered twice, and both deliveries are handled at once: the client waits 3 s longer. "
    "Give the function more memory",
)
RECORD = Question(
    "several events in one Firehose record",
    "each is a row of the lake",
    "Firehose converts the first document of a record only: history lacks events. Set RECORD_BYTES in "
    "signalbox/aws/history/firehose.py to one event",
)
FRAME_ORDER = Question(
    "order of frames on their way into FIFO",
    "none is out of order",
    "API Gateway sends frames of a connection side by side: a session's requests change places. Clients have to wait "
    "for each reply",
)
REDELIVERY = Question(
    "redelivery of a failed batch item",
    "an offer without an answer gets its error after its patience, and no earlier",
    "Lambda resets the visibility of failed items: offers are handled again and again, or clients get their error late",
)
SENDER = Question(
    "form of a SenderId",
    "the id of the user, or of the role with its session, as STS names it",
    "the exchange takes messages for those of another publisher, or of none",
)
FAIRNESS = Question(
    "fair queues: messages of a group after another group's burst",
    "they come before half of the waiting burst",
    "a publisher's burst delays the messages of the others in a queue that they share: give them queues of their own",
)
REDRIVE = Question(
    "refused RedrivePolicy",
    "an error",
    "any queue of the account may push its messages into the administrators' commands",
)
CONNECTIONS = Question(
    "refused WebSocket connections",
    "a status for each wrong connection",
    "clients without the subprotocol connect, and wait until they are closed",
)
DELAY = Question(
    "time from an event to the lake (Firehose's buffering)",
    "one to a few minutes",
    "reports of the last hour lack events",
)
JOB_RUN = Question(
    "run of a Glue job",
    "it succeeds",
    "no table is compacted and no report is made: the log group below /signalbox/<stage>/jobs has the reason",
)
QUESTIONS = (
    *(TRUST, CREATED_AGAIN, LIBRARIES, ROUTE, PAGE, OFFER_START, RECORD, FRAME_ORDER),
    *(REDELIVERY, SENDER, FAIRNESS, REDRIVE, CONNECTIONS, DELAY, JOB_RUN),
)
