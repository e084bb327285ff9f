"""The topics of an Arvados cluster's events: each about an object has its owner, by which Arvados gives permissions."""

from urllib.parse import quote

ABSENT_WORD = "-"
MAXIMUM_WORD = 40  # a topic has 255 bytes; a UUID has 27 characters
CONTAINER, REQUEST = "container", "containerRequest"
# The infixes of UUIDs (schema_controller.rb, uuidPrefix: of the MD5 of the class's name).
KINDS = {
    "gj3su": "apiClientAuthorization",
    "fngyi": "authorizedKey",
    "4zz18": "collection",
    "dz642": CONTAINER,
    "xvhdp": REQUEST,
    "oss07": "credential",
    "j7d0g": "group",
    "bi6l4": "keepService",
    "o0j2j": "link",
    "57u5n": "log",
    "tpzed": "user",
    "gv0sa": "userAgreement",
    "2x53u": "virtualMachine",
    "7fd4e": "workflow",
}
PERMISSION_GRAPH = "permission.graph"


def kind_of(uuid: str) -> str:
    """Return the kind of the object of a UUID, or an empty text."""
    return KINDS.get(uuid[6:11], "")


def state_topic(owner: str, uuid: str) -> str:
    """Return the topic of an object's present state."""
    return f"record.{word(kind_of(uuid))}.{word(owner)}.{word(uuid)}"


def event_topic(owner: str, uuid: str, event: str) -> str:
    """Return the topic of an event of an object."""
    return f"{state_topic(owner, uuid)}.{word(event)}"


def cache_topic(uuid: str) -> str:
    """Return the topic of changes of an object, which shows its UUID only."""
    return f"cache.{word(kind_of(uuid))}.{word(uuid)}"


def container_topic(owner: str, container: str, event: str) -> str:
    """Return the topic of a container's state."""
    return f"container.{word(owner)}.{word(container)}.{event}"


def log_topic(owner: str, container: str, name: str) -> str:
    """Return the topic of a container's log file, or with an empty name the prefix of all of them."""
    return container_topic(owner, container, f"log.{word(name) if name else ''}")


def word(text: str) -> str:
    """Return a text as a word of a topic; one that is empty or too long to be a name of Arvados is a dash."""
    # The text of a row's properties may be half of a surrogate pair.
    found = quote(text, safe="!$&'()+,/:;=?@-_~", errors="replace").replace(".", "%2E")
    return found if 0 < len(found) <= MAXIMUM_WORD else ABSENT_WORD
