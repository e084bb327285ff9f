"""Invalid offers, and unusual valid ones, with the reply of upstream's broker (v2.14.1) to each."""

import json

from signalbox.clients.rendezvous.simulator import sample_offer

OFFER = sample_offer("a client")
OTHER_BRIDGE = "8838024498816A039FCBBAB14E6F40A0843051FA"


def offer(**members: object) -> str:
    return "1.0\n" + json.dumps({"offer": OFFER, "nat": "restricted"} | members)


OFFERS = {
    "no line": ("1.0", "unsupported message version"),
    "carriage return": ("1.0\r\n{}", "unsupported message version"),
    "other version": ("2.0\n{}", "unsupported message version"),
    "no JSON": ("1.0\nnothing", "invalid character 'o' in literal null (expecting 'u')"),
    "nothing": ("1.0\n", "unexpected end of JSON input"),
    "other shape": ("1.0\n[]", "json: cannot unmarshal array into Go value of type messages.ClientPollRequest"),
    "other type": (
        offer(offer=1),
        "json: cannot unmarshal number into Go struct field ClientPollRequest.offer of type string",
    ),
    "no member": ("1.0\n{}", "no supplied offer"),
    "empty offer": (offer(offer=""), "no supplied offer"),
    "offer no JSON": (
        offer(offer="fake"),
        "malformed session description: invalid character 'k' in literal false (expecting 'l')",
    ),
    "no type": (
        offer(offer="{}"),
        "malformed session description: cannot deserialize SessionDescription without type field",
    ),
    "no sdp": (
        offer(offer='{"type":"offer"}'),
        "malformed session description: cannot deserialize SessionDescription without sdp field",
    ),
    "type a number": (offer(offer='{"type":1,"sdp":""}'), "malformed session description: invalid SDP type"),
    "sdp a number": (offer(offer='{"type":"offer","sdp":1}'), "malformed session description: invalid SDP"),
    "other kind": (offer(offer='{"type":"bid","sdp":""}'), "malformed session description: Unknown SDP type"),
    "short fingerprint": (offer(fingerprint="ABCD"), "cannot decode fingerprint"),
    "fingerprint no hex": (offer(fingerprint="xy" * 20), "cannot decode fingerprint"),
    "other NAT": (offer(nat="open"), "invalid NAT type"),
    "unknown bridge": (offer(fingerprint=OTHER_BRIDGE), "bridge with requested fingerprint is unknown to the broker"),
    "description before fingerprint": (
        offer(offer="{}", fingerprint="x", nat="x"),
        "malformed session description: cannot deserialize SessionDescription without type field",
    ),
    "fingerprint before NAT": (offer(fingerprint="x", nat="x"), "cannot decode fingerprint"),
    "NAT before bridge": (offer(fingerprint=OTHER_BRIDGE, nat="x"), "invalid NAT type"),
    # These are valid, so the reply is only that no proxy is available.
    "any case, more members": (
        "1.0\n" + json.dumps({"OFFER": OFFER, "Nat": "restricted", "more": 1}),
        "no snowflake proxies currently available",
    ),
    "the last of two": (
        '1.0\n{"offer":"fake",' + offer().removeprefix("1.0\n{"),
        "no snowflake proxies currently available",
    ),
    "no NAT, no fingerprint": (
        "1.0\n" + json.dumps({"offer": OFFER}),
        "no snowflake proxies currently available",
    ),
}
