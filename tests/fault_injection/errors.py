"""The errors of AWS's services in their wire forms: throttling, server errors, and those of the rules."""

import json
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tests.fault_injection.calls import Answer, ServiceCall, Wire


@dataclass(frozen=True, slots=True)
class ServiceError:
    """An error: the code in the service's model, the HTTP status, and the code in the older query protocol."""

    code: str
    status: int
    message: str = ""
    query_code: str | None = None

    def answer(self, call: ServiceCall) -> Answer:
        """Return the error in the form that the call's protocol has."""
        return FORMS[call.wire](self)


def _json(error: ServiceError) -> Answer:
    # `x-amzn-query-error` is what SDKs report as the code of SQS errors since SQS uses JSON.
    headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": error.code}
    if error.query_code is not None:
        headers["x-amzn-query-error"] = f"{error.query_code};{_fault(error)}"
    return Answer(error.status, json.dumps({"__type": error.code, "message": error.message}).encode(), headers)


def _query(error: ServiceError) -> Answer:
    code, message = escape(error.query_code or error.code), escape(error.message)
    text = (
        f"<ErrorResponse><Error><Type>{_fault(error)}</Type><Code>{code}</Code><Message>{message}</Message></Error>"
        "<RequestId>injected</RequestId></ErrorResponse>"
    )
    return Answer(error.status, text.encode(), {"Content-Type": "text/xml"})


def _rest_json(error: ServiceError) -> Answer:
    headers = {"Content-Type": "application/json", "x-amzn-ErrorType": error.code}
    return Answer(error.status, json.dumps({"message": error.message}).encode(), headers)


def _rest_xml(error: ServiceError) -> Answer:
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<Error><Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message></Error>"
    )
    return Answer(error.status, text.encode(), {"Content-Type": "application/xml"})


def _fault(error: ServiceError) -> str:
    return "Sender" if error.status < 500 else "Receiver"


FORMS = {Wire.JSON: _json, Wire.QUERY: _query, Wire.REST_JSON: _rest_json, Wire.REST_XML: _rest_xml}

RATE = "Rate exceeded"
INTERNAL = "We encountered an internal error. Please try again."
COMMON = (ServiceError("ThrottlingException", 400, RATE), ServiceError("InternalFailure", 500, INTERNAL))
QUERY_COMMON = (ServiceError("Throttling", 400, RATE), ServiceError("InternalFailure", 500, INTERNAL))
# Of each service: the error for too many requests and the server error. From the errors of the API reference of each,
# which botocore's models also have; the others answer with the errors that all services have in common
# (https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html).
FAULTS = {
    "sqs": (
        ServiceError("RequestThrottled", 403, RATE, query_code="RequestThrottled"),
        ServiceError("InternalFailure", 500, INTERNAL, query_code="InternalFailure"),
    ),
    "dynamodb": (ServiceError("ThrottlingException", 400, RATE), ServiceError("InternalServerError", 500, INTERNAL)),
    "lambda": (ServiceError("TooManyRequestsException", 429, RATE), ServiceError("ServiceException", 500, INTERNAL)),
    "kms": (ServiceError("ThrottlingException", 400, RATE), ServiceError("KMSInternalException", 500, INTERNAL)),
    "iam": (ServiceError("Throttling", 400, RATE), ServiceError("ServiceFailure", 500, INTERNAL)),
    "sts": QUERY_COMMON,
    "cloudformation": QUERY_COMMON,
    "sns": (ServiceError("Throttled", 429, RATE), ServiceError("InternalError", 500, INTERNAL)),
    "s3": (
        ServiceError("SlowDown", 503, "Please reduce your request rate."),
        ServiceError("InternalError", 500, INTERNAL),
    ),
    "firehose": (COMMON[0], ServiceError("ServiceUnavailableException", 503, "Slow down.")),
    "scheduler": (ServiceError("ThrottlingException", 429, RATE), ServiceError("InternalServerException", 500)),
    "execute-api": (
        ServiceError("LimitExceededException", 429, RATE),
        ServiceError("InternalServerError", 500, INTERNAL),
    ),
}

KMS_THROTTLED = ServiceError(
    "KmsThrottled",
    400,
    "You have exceeded the rate at which you may call KMS. Reduce the frequency of your calls.",
    query_code="KMS.ThrottlingException",
)
KMS_UNUSABLE = ServiceError(
    "KmsInvalidState",
    400,
    "The request was rejected because the state of the specified resource is not valid for this request.",
    query_code="KMS.InvalidStateException",
)
QUEUE_MISSING = ServiceError(
    "QueueDoesNotExist",
    400,
    "The specified queue does not exist.",
    query_code="AWS.SimpleQueueService.NonExistentQueue",
)
DEAD_LETTER_TARGET_MISSING = ServiceError(
    "InvalidParameterValue",
    400,
    "Value for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist.",
    query_code="InvalidParameterValue",
)
MAPPED_QUEUE_MISSING = ServiceError(
    "InvalidParameterValueException",
    400,
    "Error occurred while ReceiveMessage. SQS Error Code: AWS.SimpleQueueService.NonExistentQueue. "
    "SQS Error Message: The specified queue does not exist.",
)
QUEUE_DELETED_RECENTLY = ServiceError(
    "QueueDeletedRecently",
    400,
    "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
    query_code="AWS.SimpleQueueService.QueueDeletedRecently",
)
QUEUE_EXISTS = ServiceError(
    "QueueNameExists",
    400,
    "A queue already exists with the same name and a different value for tags",
    query_code="QueueAlreadyExists",
)
MAPPING_IN_USE = ServiceError(
    "ResourceInUseException", 400, "The operation cannot be performed: the mapping is being changed."
)
GONE = ServiceError("GoneException", 410)


def faults_of(call: ServiceCall) -> tuple[ServiceError, ServiceError]:
    """Return the error for too many requests and the server error of the call's service."""
    return FAULTS.get(call.service, QUERY_COMMON if call.wire is Wire.QUERY else COMMON)
