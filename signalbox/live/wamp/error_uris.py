"""The URIs of the errors and closing reasons that the live router sends."""

INVALID_URI = "wamp.error.invalid_uri"
INVALID_ARGUMENT = "wamp.error.invalid_argument"
NOT_AUTHORIZED = "wamp.error.not_authorized"
NO_SUCH_PROCEDURE = "wamp.error.no_such_procedure"
NO_SUCH_REALM = "wamp.error.no_such_realm"
NO_SUCH_REGISTRATION = "wamp.error.no_such_registration"
NO_SUCH_SUBSCRIPTION = "wamp.error.no_such_subscription"
PAYLOAD_SIZE_EXCEEDED = "wamp.error.payload_size_exceeded"
PROTOCOL_VIOLATION = "wamp.error.protocol_violation"
TIMEOUT = "wamp.error.timeout"
NO_SUCH_SESSION = "wamp.error.no_such_session"
UNAVAILABLE = "wamp.error.unavailable"

# Also sent for wrong secrets, as Autobahn and nexus do; the newest specification has `authentication_denied` for them.
AUTHENTICATION_FAILED = "wamp.error.authentication_failed"
AUTHENTICATION_REQUIRED = "wamp.error.authentication_required"
NO_MATCHING_AUTH_METHOD = "wamp.error.no_matching_auth_method"

GOODBYE_AND_OUT = "wamp.close.goodbye_and_out"

# WAMP defines no reasons for these; a client has to join again.
TOKEN_EXPIRED = "signalbox.close.token_expired"  # noqa: S105 - a URI
ROLE_CHANGED = "signalbox.close.role_changed"

TOO_MANY_SUBSCRIPTIONS = "signalbox.error.too_many_subscriptions"  # WAMP defines no URI for it
