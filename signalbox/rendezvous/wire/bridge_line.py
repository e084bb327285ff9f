"""The line with which Tor is configured to use a bridge through Snowflake and this stage."""

from collections.abc import Sequence

from signalbox.rendezvous.wire.bridges import Fingerprint

# What Tor can give to its transport: the user name and the password of SOCKS5 (MAX_SOCKS5_AUTH_SIZE_TOTAL). It refuses
# a line with longer arguments.
MOST_ARGUMENT_BYTES = 510
# Public STUN servers, those of upstream's client/torrc (v2.14.1) in its order. Without any, a client finds only its
# local addresses, and no proxy reaches it through a NAT. A client uses half of three or more, chosen at random.
STUN_SERVERS = (
    "stun:stun.antisip.com:3478",
    "stun:stun.epygi.com:3478",
    "stun:stun.uls.co.za:3478",
    "stun:stun.voipgate.com:3478",
    "stun:stun.mixvoip.com:3478",
    "stun:stun.nextcloud.com:3478",
    "stun:stun.bethesda.net:3478",
    "stun:stun.nextcloud.com:443",
)
# Addresses that Tor requires and Snowflake ignores; each bridge has another one, since Tor identifies bridges by it.
FIRST_ADDRESS, ADDRESSES = 5, 250


def bridge_lines(
    fingerprints: Sequence[Fingerprint],
    *,
    queue_url: str,
    sqscreds: str,
    stun_servers: Sequence[str] = STUN_SERVERS,
) -> list[str]:
    """Return a line of Tor's configuration for each bridge, with as many STUN servers as Tor takes."""
    return [
        _line(place, fingerprint, f"sqsqueue={queue_url}", f"sqscreds={sqscreds}", stun_servers)
        for place, fingerprint in enumerate(fingerprints)
    ]


def _line(place: int, fingerprint: Fingerprint, queue: str, key: str, stun_servers: Sequence[str]) -> str:
    arguments = [f"fingerprint={fingerprint}", queue, key]
    # Tor joins the arguments by one character each.
    left = MOST_ARGUMENT_BYTES - len(" ".join([*arguments, "ice="]))
    if servers := _fitting(stun_servers, left):
        arguments.append(f"ice={servers}")
    address = f"192.0.2.{FIRST_ADDRESS + place % ADDRESSES}:80"
    return " ".join(["Bridge snowflake", address, fingerprint, *arguments])


def _fitting(servers: Sequence[str], size_bytes: int) -> str:
    """Return the first servers that fit into this size, with commas."""
    for count in range(len(servers), 0, -1):
        text = ",".join(servers[:count])
        if len(text) <= size_bytes:
            return text
    return ""
