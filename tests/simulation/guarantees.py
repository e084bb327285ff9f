"""The guarantees of the pages, each as a check of one run; the docstring has the pages' sentences.

A test finds each sentence on a page. Those of liveness begin with `CALM`: no page says when everything ends.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from signalbox.aws.splitting.locks import USE_KEPT_FOR
from signalbox.exchange.model.names import is_dead_letter_name
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import NUMBERS_OF_A_DAY
from signalbox.queues import is_fifo
from signalbox.rendezvous.wire.reply import answer_reply
from tests.simulation.exchange import BOUND, ORDERED_EXCHANGE, ORDERED_RETRIES, RETRIES, ExchangeWorld, matches
from tests.simulation.exchange import DEAD as EXCHANGE_DEAD
from tests.simulation.functions import LONGEST_CHAIN
from tests.simulation.kernel import START
from tests.simulation.live import INBOX as LIVE_INBOX
from tests.simulation.live import ORDERED_DEAD as LIVE_DEAD
from tests.simulation.live import OUTBOX as LIVE_OUTBOX
from tests.simulation.live import REALM, LiveWorld
from tests.simulation.queue import DEDUPLICATION_SECONDS, StoredMessage
from tests.simulation.rendezvous import BROKER, CONFIG, DEAD, PREFIX, RendezvousWorld
from tests.simulation.revocation import RevocationWorld
from tests.simulation.splitting import CONTROL as SPLIT_CONTROL
from tests.simulation.splitting import DEAD as SPLIT_DEAD
from tests.simulation.splitting import FOREIGN, PARAMETERS, TARGETS, Handled, SplittingWorld
from tests.simulation.splitting import PREFIX as SPLIT_PREFIX
from tests.simulation.sqs import URL as SQS_URL
from tests.simulation.world import OVERFLOW, World

# The begin of what is true some time after the last fault.
CALM = "When the faults have ended"
# Of a function that is killed again and again: an offer is delivered anew after each, but a client's queue ends.
GRACE_SECONDS = 60
# How long a message takes without a fault in its way, and after the last one.
PROMPT_SECONDS, SOON_SECONDS = 15, 120
# Ten seconds and the time of two functions.
LATEST_ANSWER_SECONDS = 16
# The most runs of a chain of reconciles.
MOST_RECONCILES = 501  # after the command that began them, 500 runs
# The most rounds of a target in a minute: a chain waits a second at least.
MOST_ROUNDS = 75


# docs/history.md


def the_same_fact_has_one_event(world: World) -> Iterator[str]:
    """The same fact has the same `event_id`, so jobs drop the copies that retries make."""
    events: dict[str, dict[str, object]] = {}
    for line in world.firehose.lines:
        event = json.loads(line)
        known = events.setdefault(event["event_id"], event)
        if known["kind"] != event["kind"]:
            yield f"event {event['event_id']} is of {known['kind']} and {event['kind']}"


def history_loses_no_event(world: World) -> Iterator[str]:
    """History never blocks a message, and loses no event when Firehose throttles."""
    kept = set(world.firehose.lines)
    lines = [line for message in world.sqs.queues[OVERFLOW].log for line in message.body.splitlines()]
    lost = [line for line in lines if line not in kept]
    if lost:
        yield f"{len(lost)} of {len(lines)} refused events are lost, such as {lost[0][:200]}"
    if world.sqs.queues[OVERFLOW].messages:
        yield f"{len(world.sqs.queues[OVERFLOW].messages)} messages are left in the overflow queue"


# docs/architecture.md


def no_chain_is_long(world: World) -> Iterator[str]:
    """SQS moves no message of a stage's queue to a dead-letter queue by itself, and functions only for its content or
    its addressee (`lambdas/shared/poison.py`), so no chain may become that long.
    """
    for name, function in world.functions.items():
        most = MOST_RECONCILES if function.loops else LONGEST_CHAIN
        if function.longest_chain > most:
            yield f"function {name} was invoked {function.longest_chain} times in one chain"


def history_is_private(world: World) -> Iterator[str]:
    """Every event is one row with one id, however often it is written, without addresses or message bodies."""
    text = "\n".join(world.firehose.lines)
    yield from (f"history has {private!r}" for private in world.private if private in text)


EVERYWHERE = (history_is_private, the_same_fact_has_one_event, history_loses_no_event, no_chain_is_long)


# docs/rendezvous.md


def one_answer_or_one_error(world: RendezvousWorld) -> Iterator[str]:
    """An offer gets one answer or one error, and uses one proxy at a time."""
    for client_id, offer in world.account.offers.items():
        replies = world.replies(client_id)
        different = {body for _, body in replies}
        if len(different) > 1:
            yield f"client {client_id} got {len(different)} replies: {sorted(map(_short, different))}"
        if len(replies) > 1 and not any(offer.began <= one.at <= replies[-1][0] for one in world.kernel.faults):
            yield f"client {client_id} got {len(replies)} equal replies without a fault"


def one_proxy_at_a_time(world: RendezvousWorld) -> Iterator[str]:
    """One answer per offer, despite crashes and redeliveries."""
    clients = {offer.sdp: offer.client_id for offer in world.account.offers.values()}
    for sdp, found in world.account.matches.items():
        for one, other in pairwise(sorted(found, key=lambda match: match.began)):
            # The claims were within the polls, whose responses may be late.
            if max(other.received - one.began, one.received - other.began) < CONFIG.match_patience_seconds:
                times = f"{one.began - START:.3f} to {one.received - START:.3f} and {other.received - START:.3f} s"
                yield f"two proxies had the offer of {clients[sdp]} at {times}"


def no_offer_is_lost(world: RendezvousWorld) -> Iterator[str]:
    """A function killed at any point loses no offer. A client is notified when its patience ends, also over SQS."""
    for offer in world.account.offers.values():
        last = offer.began + CONFIG.offer_patience_seconds + GRACE_SECONDS
        if offer.sent is None or offer.sent > world.end - 300 or world.was_away(offer.began, last):
            continue
        times = [at for at, _ in world.replies(offer.client_id)]
        if not times:
            yield f"client {offer.client_id} got no reply to its offer of {offer.began:.1f}"
        elif min(times) > offer.sent + CONFIG.offer_patience_seconds + GRACE_SECONDS:
            yield f"client {offer.client_id} got its reply after {min(times) - offer.sent:.0f} s"


def an_accepted_answer_arrives(world: RendezvousWorld) -> Iterator[str]:
    """An answer that was stored but not sent is sent when the offer is delivered again."""
    clients = {offer.sdp: offer.client_id for offer in world.account.offers.values()}
    for at, answer in world.account.accepted:
        sdp, sid = world.account.answers[answer]
        if world.was_away(at - 60, at + 60):
            continue
        if answer_reply(answer) not in {body for _, body in world.replies(clients[sdp])}:
            yield f"the accepted answer of {sid} did not reach {clients[sdp]}"


def an_answer_in_time_is_accepted(world: RendezvousWorld) -> Iterator[str]:
    """An answer without a match is refused at once."""
    account = world.account
    clients = {offer.sdp: offer for offer in account.offers.values()}
    for at, answer in account.refused:
        sdp, sid = account.answers[answer]
        offer, (match,) = clients[sdp], (one for one in account.matches[sdp] if one.sid == sid)
        others = [moment for moment, other in (*account.accepted, *account.refused) if moment < at and other != answer]
        if answer_reply(answer) in {body for _, body in world.replies(offer.client_id)}:
            continue  # it was stored by a call whose response was lost
        is_in_time = at < min(match.began + CONFIG.match_patience_seconds, offer.began + CONFIG.offer_patience_seconds)
        is_first = all(one == answer or account.answers[one][0] != sdp for one in account.posted)
        if is_in_time and is_first and len(account.posted[answer]) == 1 and all(at - one > 10 for one in others[-3:]):
            yield f"the answer of {sid} to {offer.client_id} was refused {at - match.began:.1f} s after its poll"


def an_answer_is_sent_soon(world: RendezvousWorld) -> Iterator[str]:
    """An answer that was stored but not sent is sent when the offer is delivered again, within ten seconds."""
    posted = {answer_reply(answer): times[0] for answer, times in world.account.posted.items()}
    for client_id in world.account.offers:
        for at, body in world.replies(client_id):
            begin = posted.get(body, at)
            faults = [one for one in world.kernel.faults if begin <= one.at <= at and not one.kind.startswith("a ")]
            if at - begin > LATEST_ANSWER_SECONDS and len(faults) < 2 and not world.was_away(begin, at):
                yield f"client {client_id} got its answer after {at - begin:.1f} s"


def client_queues_are_swept(world: RendezvousWorld) -> Iterator[str]:
    """When the faults have ended, a client's queue is deleted within its lease and two sweeps."""
    longest = CONFIG.client_queue_lease_seconds + 2 * CONFIG.sweep_interval_minutes * 60 + GRACE_SECONDS
    for queue in world.sqs.made:
        if queue.name.startswith(PREFIX) and world.faults_end < queue.created_at < world.end:
            deleted_at = world.sqs.deleted_at.get(queue.name)
            if deleted_at is None or deleted_at > queue.created_at + longest:
                yield f"{queue.name} was not deleted within {longest} s"


def strangers_are_refused(world: RendezvousWorld) -> Iterator[str]:
    """An answer without a match is refused at once, and never kept for the next client."""
    wrong = set(world.account.strangers) - {"client gone"}
    if wrong:
        yield f"a stranger's answer got {wrong}"


def other_queues_stay(world: RendezvousWorld) -> Iterator[str]:
    """Queues of other owners are never touched."""
    if PREFIX + "foreign" not in world.sqs.queues:
        yield "the queue of another owner was deleted"


def counters_have_no_address(world: RendezvousWorld) -> Iterator[str]:
    """History, counters and logs contain no address and no session description."""
    counters = world.dynamodb.tables["Rendezvous"].items.items()
    text = str([items for partition, items in counters if partition.startswith("statistics#")])
    yield from (f"a counter has {private!r}" for private in world.private if private in text)


def rendezvous_ends(world: RendezvousWorld) -> Iterator[str]:
    """When the faults have ended, all offers and queues end in the longest time of a stray queue."""
    left = [one.body[:40] for one in world.sqs.queues[BROKER].messages.values()]
    if left:
        yield f"{len(left)} offers are left in the broker queue"
    queues = [name for name in world.sqs.queues if name.startswith(PREFIX) and name != PREFIX + "foreign"]
    if queues:
        yield f"{len(queues)} queues of clients are left, such as {queues[0]}"
    if world.sqs.queues[DEAD].messages:
        yield f"{len(world.sqs.queues[DEAD].messages)} offers are dead letters"


RENDEZVOUS: tuple[Callable[[RendezvousWorld], Iterator[str]], ...] = (
    one_answer_or_one_error,
    one_proxy_at_a_time,
    no_offer_is_lost,
    an_accepted_answer_arrives,
    an_answer_in_time_is_accepted,
    an_answer_is_sent_soon,
    client_queues_are_swept,
    strangers_are_refused,
    other_queues_stay,
    counters_have_no_address,
    *EVERYWHERE,
    rendezvous_ends,
)


def _short(reply: str) -> str:
    return reply if "error" in reply else f"answer {hash(reply) % 10_000}"


# docs/exchange.md


def no_message_is_lost(world: ExchangeWorld) -> Iterator[str]:
    """No message is lost; one copy per bound queue.

    In ordered exchanges order and gapless numbers for keys in use.
    """
    for exchange, queues in BOUND.items():
        copies = {name: {one.body for one in world.sqs.queues[name].log} for name in queues}
        for message in world.sqs.queues[exchange].log:
            published = world.account.published[message.body]
            for name, patterns in queues.items():
                is_bound = published.is_valid and any(matches(pattern, published.key) for pattern in patterns)
                if is_bound and message.body not in copies[name]:
                    yield f"publication {message.body!r} with key {published.key!r} is not in {name}"
                if not is_bound and message.body in copies[name]:
                    yield f"publication {message.body!r} with key {published.key!r} is in {name}, which is not bound"


def one_copy_per_queue(world: ExchangeWorld) -> Iterator[str]:
    """A copy is repeated only when the exchange's message is: after a function was killed or a call timed out."""
    for queues in BOUND.values():
        for name in queues:
            ids: dict[str, list[StoredMessage]] = defaultdict(list)
            for copy in world.sqs.queues[name].log:
                ids[_text_of(copy, "message_id")].append(copy)
            for message_id, found in ids.items():
                if len(found) > 1 and not world.kernel.faults:
                    yield f"{len(found)} copies of {message_id} are in {name} without any fault"
                if len({(one.group, one.deduplication_id) for one in found}) > 1 and is_fifo(name):
                    yield f"the copies of {message_id} in {name} have several deduplication ids"


def numbers_have_no_gap(world: ExchangeWorld) -> Iterator[str]:
    """Order and numbers hold in ordered exchanges, also through retries and killed functions."""
    numbers: dict[tuple[str, int], str] = {}
    for name in BOUND[ORDERED_EXCHANGE]:
        for copy in world.sqs.queues[name].log:
            place, message_id = (_text_of(copy, "topic"), _number_of(copy)), _text_of(copy, "message_id")
            if numbers.setdefault(place, message_id) != message_id:
                yield f"number {place[1]} of key {place[0]!r} is that of two messages"
    for key in {key for key, _ in numbers}:
        found = sorted(number for one, number in numbers if one == key)
        missing = [earlier + 1 for earlier, later in pairwise(found) if later > earlier + 1]
        if missing or found[0] % NUMBERS_OF_A_DAY != 1:
            yield f"key {key!r} has numbers from {found[0]} to {found[-1]} without {missing[:5]}"


def order_holds_in_each_key(world: ExchangeWorld) -> Iterator[str]:
    """In an ordered exchange, later messages of the same key for that queue follow it in order."""
    for name in filter(is_fifo, BOUND[ORDERED_EXCHANGE]):
        last: dict[str, int] = {}
        seen: set[tuple[str, int]] = set()
        for copy in world.sqs.queues[name].log:
            key, number = _text_of(copy, "topic"), _number_of(copy)
            if (key, number) in seen:
                continue
            seen.add((key, number))
            if number < last.get(key, 0):
                yield f"{name} got number {number} of key {key!r} after number {last[key]}"
            last[key] = max(last.get(key, 0), number)


def nothing_valid_dies(world: ExchangeWorld) -> Iterator[str]:
    """Bad input loses no message and is never retried forever. Nothing but bad input becomes a dead letter."""
    places = [queue for name, queue in world.sqs.queues.items() if name == EXCHANGE_DEAD or is_dead_letter_name(name)]
    dead = {one.body for queue in places for one in queue.log}
    for body in {one.body for name in BOUND for one in world.sqs.queues[name].log}:
        if (body in dead) is world.account.published[body].is_valid:
            yield f"publication {body!r} is {'a' if body in dead else 'no'} dead letter"


def exchange_ends(world: ExchangeWorld) -> Iterator[str]:
    """When the faults have ended, all messages reach their queues within two minutes, and none is left elsewhere."""
    late = world.faults_end + SOON_SECONDS
    for exchange, queues in BOUND.items():
        old = {one.body for one in world.sqs.queues[exchange].log if one.sent_at < world.faults_end}
        if old & {one.body for name in queues for one in world.sqs.queues[name].log if one.sent_at > late}:
            yield f"{exchange} sent old messages later than {late:.0f}"
    for name in (RETRIES, ORDERED_RETRIES):
        if any(one.sent_at > late for one in world.sqs.queues[name].log):
            yield f"copies take {name} later than {late:.0f}"
    for name in (*BOUND, RETRIES, ORDERED_RETRIES):
        left = world.sqs.queues[name].messages
        if left:
            yield f"{len(left)} messages are left in {name}"


def a_failing_queue_delays_no_other(world: ExchangeWorld) -> Iterator[str]:
    """A failing queue does not delay others."""
    if any(not one.kind.startswith("queue ") for one in world.kernel.faults):
        return
    for exchange, queues in BOUND.items():
        sent = {one.body: one.sent_at for one in world.sqs.queues[exchange].log}
        for name in (name for name in queues if not world.sqs.queues[name].refuses_until):
            for copy in world.sqs.queues[name].log:
                if copy.sent_at - sent[copy.body] > PROMPT_SECONDS:
                    yield f"{copy.body!r} reached {name} after {copy.sent_at - sent[copy.body]:.0f} s"


EXCHANGE: tuple[Callable[[ExchangeWorld], Iterator[str]], ...] = (
    no_message_is_lost,
    one_copy_per_queue,
    numbers_have_no_gap,
    order_holds_in_each_key,
    nothing_valid_dies,
    a_failing_queue_delays_no_other,
    exchange_ends,
    *EVERYWHERE,
)


def _number_of(copy: StoredMessage) -> int:
    """Return the number of a copy; 0 if it has none, which is a gap."""
    return int(_text_of(copy, "sequence")) if "sequence" in copy.attributes else 0


def _text_of(message: StoredMessage, name: str) -> str:
    return str(message.attributes[name]["StringValue"])


# docs/live.md


def no_event_is_missed(world: LiveWorld) -> Iterator[str]:
    """No event is missed. A subscription with history gets first past and then new events, without a gap."""
    logged = _logged(world)
    for name, follower in world.account.followers.items():
        got = {event.publication for _, event in follower.events}
        wanted = [place for place in logged if follower.pattern.matches(RoutingKey(place[0]))]
        missing = sorted(place for place in wanted if logged[place] not in got)
        if missing:
            yield f"{name} with {follower.pattern} missed {len(missing)} events, such as {missing[0]}"
        skipped = [event for _, event in follower.events if event.skipped]
        if skipped:
            yield f"{name} got number {skipped[0].sequence} of {skipped[0].topic} after a gap of {skipped[0].skipped}"


def each_event_once_and_in_order(world: LiveWorld) -> Iterator[str]:
    """The past, then new events, each once and in the order of its topic.

    All subscribers see the events of a topic in one order.
    """
    for name, follower in world.account.followers.items():
        last: dict[str, int] = {}
        publications = Counter(event.publication for _, event in follower.events)
        twice = [publication for publication, times in publications.items() if times > 1]
        if twice:
            yield f"{name} got publication {twice[0]} {publications[twice[0]]} times"
        for _, event in follower.events:
            number = event.sequence or 0
            if number <= last.get(event.topic, 0):
                yield f"{name} got number {number} of {event.topic} after {last[event.topic]}"
            last[event.topic] = number


def new_events_follow_the_past(world: LiveWorld) -> Iterator[str]:
    """Whatever past is requested, all events follow that were published since the client sent SUBSCRIBE."""
    times = {place: document["at"] / 1000 for place, document in _documents(world).items()}
    for socket in world.visits:
        got: dict[str, list[int]] = defaultdict(list)
        for details in (json.loads(message)[3] for message in socket.events):
            got[details["topic"]].append(details["_seq"])
        begin = min(socket.subscriptions.values(), default=world.end)
        for (topic, number), at in times.items():
            if at > begin and number not in got[topic] and number < max(got[topic], default=0):
                yield f"{socket.connection} missed number {number} of {topic}, {at - begin:.3f} s after SUBSCRIBED"


def what_is_published_is_logged_once(world: LiveWorld) -> Iterator[str]:
    """A repeated event has the same publication id and the same `_seq`."""
    places: dict[str, set[tuple[str, int]]] = defaultdict(set)
    texts: dict[tuple[str, int], set[str]] = defaultdict(set)
    for follower in world.account.followers.values():
        for _, event in follower.events:
            text = str(event.payload.arguments[0]) if event.payload.arguments else ""
            places[text].add((event.topic, event.sequence or 0))
            texts[event.topic, event.sequence or 0].add(text)
    for text, found in places.items():
        if len(found) > 1 and text.startswith("sqs"):
            yield f"{text!r} has several places: {sorted(found)}"
    for place, several in texts.items():
        if len(several) > 1:
            yield f"number {place[1]} of {place[0]} is that of {sorted(several)}"


def what_is_published_has_one_id(world: LiveWorld) -> Iterator[str]:
    """A repeated event has the same publication id and the same `_seq`."""
    ids: dict[str, int] = {}
    for follower in world.account.followers.values():
        for _, event in follower.events:
            text = str(event.payload.arguments[0]) if event.payload.arguments else ""
            if ids.setdefault(text, event.publication) != event.publication:
                yield f"{text!r} has the publication ids {ids[text]} and {event.publication}"


def what_is_published_again_is_dropped(world: LiveWorld) -> Iterator[str]:
    """Only if a PUBLISH is handled again more than five minutes later, as after an outage, its event has the same
    publication id and another `_seq`.
    """
    sent: dict[str, float] = {}
    for message in world.sqs.queues[REALM].log:
        if message.sent_at - sent.get(message.body, 0.0) < DEDUPLICATION_SECONDS:
            yield f"{message.body!r} was published twice within {message.sent_at - sent[message.body]:.0f} s"
        sent[message.body] = message.sent_at


def an_acknowledged_event_is_logged(world: LiveWorld) -> Iterator[str]:
    """PUBLISHED follows the events."""
    got = {str(event.payload.arguments[0]) for one in world.account.followers.values() for _, event in one.events}
    for text in world.account.confirmed:
        if text not in got:
            yield f"the acknowledged event {text!r} reached no subscriber"


def live_ends(world: LiveWorld) -> Iterator[str]:
    """When the faults have ended, everything is delivered within two minutes: no gap is left in a topic."""
    for name in (LIVE_INBOX, LIVE_OUTBOX, REALM):
        old = [one for one in world.sqs.queues[name].messages.values() if one.sent_at < world.end - SOON_SECONDS]
        if old:
            yield f"{len(old)} messages are left in {name}"
    begin = datetime.fromtimestamp(world.faults_end, UTC)
    for name, follower in world.account.followers.items():
        late = [at - world.faults_end for at, event in follower.events if event.at and event.at < begin]
        if max(late, default=0) > SOON_SECONDS:
            yield f"{name} got an old event {max(late):.0f} s after the last fault"
    logged = _logged(world)
    for topic in {topic for topic, _ in logged}:
        numbers = sorted(number for one, number in logged if one == topic)
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"topic {topic} has the numbers {numbers[:3]} to {numbers[-1]}, {len(numbers)} in all"


def nothing_of_live_dies(world: LiveWorld) -> Iterator[str]:
    """Nothing but bad input becomes a dead letter."""
    for name in (LIVE_DEAD, EXCHANGE_DEAD):
        for one in world.sqs.queues[name].log:
            yield f"{name} has a message: {one.body[:100]!r}"


def what_a_session_publishes_keeps_its_order(world: LiveWorld) -> Iterator[str]:
    """What one session publishes reaches each subscriber in that order, across topics."""
    for name, follower in world.account.followers.items():
        last: dict[str, int] = {}
        for _, event in follower.events:
            text = str(event.payload.arguments[0]) if event.payload.arguments else ""
            who, _, count = text.partition(".")
            if text in world.account.confirmed and int(count) < last.get(who, 0):
                yield f"{name} got {text!r} after number {last[who]}"
            last[who] = int(count) if text in world.account.confirmed else last.get(who, 0)


def events_follow_their_subscription(world: LiveWorld) -> Iterator[str]:
    """No EVENT is sent before its SUBSCRIBED."""
    yield from world.gateway.early


def a_connection_joins_or_is_closed(world: LiveWorld) -> Iterator[str]:
    """A connection that has not joined within 10 s is closed."""
    for socket in world.mute:
        if socket.connection in world.gateway.open:
            yield f"connection {socket.connection} is open and has not joined"


LIVE: tuple[Callable[[LiveWorld], Iterator[str]], ...] = (
    no_event_is_missed,
    new_events_follow_the_past,
    each_event_once_and_in_order,
    what_is_published_is_logged_once,
    what_is_published_has_one_id,
    what_is_published_again_is_dropped,
    an_acknowledged_event_is_logged,
    what_a_session_publishes_keeps_its_order,
    events_follow_their_subscription,
    a_connection_joins_or_is_closed,
    live_ends,
    nothing_of_live_dies,
    *EVERYWHERE,
)


def nothing_after_a_revocation(world: RevocationWorld) -> Iterator[str]:
    """Nothing published after a right was revoked is delivered."""
    for received, event in world.received:
        published = event.at.timestamp() - 0.001 if event.at else 0.0
        for ended, given in world.without:
            if ended < published and received < given:
                times = f"{published - ended:.3f} s after the reply, at {received - ended:.3f} s"
                yield f"the guest got number {event.sequence} of {event.topic}, published {times}"


REVOCATION: tuple[Callable[[RevocationWorld], Iterator[str]], ...] = (*LIVE, nothing_after_a_revocation)


def _logged(world: LiveWorld) -> dict[tuple[str, int], int]:
    """Return the publications in the log by topic and number."""
    return {place: document["publication"] for place, document in _documents(world).items()}


def _documents(world: LiveWorld) -> dict[tuple[str, int], Any]:
    """Return the documents of the log by topic and number."""
    mark, items = f"log#{REALM}#", world.dynamodb.tables["Live"].items
    return {
        (partition.removeprefix(mark), int(number)): json.loads(item["text"])
        for partition, known in items.items()
        if partition.startswith(mark)
        for number, item in known.items()
    }


# docs/splitting.md


def no_split_message_is_lost(world: SplittingWorld) -> Iterator[str]:
    """No message is lost. Unconsumed messages of a session are returned."""
    handled = {one.body for one in world.account.handled}
    for queue in TARGETS.values():
        dead = {one.body for one in world.sqs.queues[f"dead-{queue}"].log}
        for message in world.sqs.queues[queue].log:
            if message.body not in handled | dead:
                yield f"message {message.body} was not handled"


def a_fifo_message_is_handled_once(world: SplittingWorld) -> Iterator[str]:
    """A FIFO queue's message exactly once, to one queue.

    SQS drops a repetition of it within five minutes. A consumer that reads the original while it is split, such as a
    target that was just deployed, may receive there what a killed function has sent already.
    """
    last: dict[str, Handled] = {}
    for one in world.account.handled:
        queue, before = world.account.sent[one.body][0], last.get(one.body)
        last[one.body] = one
        if before and is_fifo(queue) and not _is_deployed_between(world, queue, before, one):
            apart = abs(_since(one, queue) - _since(before, queue))
            if apart < DEDUPLICATION_SECONDS:
                yield f"{before.who} and {one.who} handled {one.body}, which came again within {apart:.0f} s"


def _since(one: Handled, original: str) -> float:
    """Return when a copy was sent; one in the original can come again until it is handled."""
    return one.at if one.queue.name == original else one.sent_at


def _is_deployed_between(world: SplittingWorld, original: str, *copies: Handled) -> bool:
    """Return whether the consumer was deployed during the split, and then handled one of the copies in the original."""
    split_at = max(one.queue.created_at for one in copies)
    read_at = max((one.at for one in copies if one.queue.name == original), default=split_at)
    return any(name == original and split_at < at < read_at for name, at in world.account.deployed)


def order_within_a_group_holds(world: SplittingWorld) -> Iterator[str]:
    """Order within a FIFO group holds.

    A target that is deployed while it is split reads newer messages from its original queue before the older ones in
    its temporary queue. Messages returned to the original are behind newer ones.
    """
    if world.are_messages_held:  # by consumers of ended sessions: they are behind newer ones, too
        return
    is_original_newer = world.has_deployments or not world.drains_in_time
    last: dict[tuple[str, str, str], int] = {}
    handled: set[str] = set()
    for one in world.account.handled:
        queue, group = world.account.sent[one.body]
        if one.body in handled:  # one that comes twice is the matter of another check
            continue
        handled.add(one.body)
        if is_fifo(queue) and not (is_original_newer and one.who.startswith("consumer")):
            message = json.loads(one.body)
            place = (one.who, group, message["author"])
            if message["number"] < last.get(place, 0):
                yield f"{one.who} handled {one.body} after number {last[place]}"
            last[place] = message["number"]


def the_consumer_is_restored(world: SplittingWorld) -> Iterator[str]:
    """The deployed consumer is restored when the last session ends, despite crashes.

    A schedule starts one every minute, so a split without sessions ends by itself.
    """
    for parameter, queue in PARAMETERS.items():
        if world.parameters.value(parameter) != SQS_URL + queue:
            yield f"parameter {parameter} is {world.parameters.value(parameter)!r}"
    yield from world.pods.problems()
    left = [name for name in world.sqs.queues if name.startswith(SPLIT_PREFIX) and name != FOREIGN]
    if left:
        yield f"{len(left)} temporary queues are left, such as {left[0]}"
    splits = [key for key, known in world.dynamodb.tables["Splits"].items.items() if "split" in known]
    if splits:
        yield f"splits are left: {splits}"
    dead = world.sqs.queues[SPLIT_DEAD].log
    if dead:
        yield f"{len(dead)} messages are dead letters, such as {dead[0].body[:100]!r}"


def messages_are_not_changed(world: SplittingWorld) -> Iterator[str]:
    """Bodies and attributes are not changed."""
    sent = {one.body: one.attributes for queue in TARGETS.values() for one in world.sqs.queues[queue].log}
    for queue in (queue for queue in world.sqs.made if queue.name.startswith(SPLIT_PREFIX)):
        yield from (f"{one.body} is changed in {queue.name}" for one in queue.log if sent[one.body] != one.attributes)


def nothing_comes_twice_without_faults(world: SplittingWorld) -> Iterator[str]:
    """A standard queue's message is delivered at least once, as by SQS itself."""
    twice = [body for body, times in Counter(one.body for one in world.account.handled).items() if times > 1]
    if twice and not world.kernel.faults:
        yield f"without a fault, {twice[0]} was handled twice"


def only_queues_of_this_stage_are_deleted(world: SplittingWorld) -> Iterator[str]:
    """Only queues of this stage are deleted."""
    if FOREIGN not in world.sqs.queues:
        yield f"the queue {FOREIGN} of another owner was deleted"


def a_use_is_recorded_first(world: SplittingWorld) -> Iterator[str]:
    """A queue with uses has received nothing later than one function timeout after its last use."""
    items = world.dynamodb.tables["Splits"].items
    for queue in world.sqs.made:
        if queue.name.startswith(SPLIT_PREFIX) and queue.log:
            use = items.get(f"use#{queue.name}", {}).get("use", {})
            latest = float(use.get("until", 0)) / 1000 + world.functions["split"].timeout
            late = [one for one in queue.log if one.sent_at > latest]
            yield from (f"{one.body} was sent to {queue.name} {one.sent_at - latest:.0f} s too late" for one in late)


def a_closed_queue_gets_nothing(world: SplittingWorld) -> Iterator[str]:
    """Calls of a closed queue's session route its messages to the next match."""
    items = world.dynamodb.tables["Splits"].items
    for queue in world.sqs.made:
        use = items.get(f"use#{queue.name}", {}).get("use", {})
        if use.get("is_closed"):
            closed_at = float(use["expires_at"]) - USE_KEPT_FOR.total_seconds() + 0.5
            last = max(closed_at, float(use.get("until", 0)) / 1000)
            late = [one for one in queue.log if one.began > last]
            yield from (f"{one.body} was sent to {queue.name} by a call after its end" for one in late)


def a_session_lasts_while_it_beats(world: SplittingWorld) -> Iterator[str]:
    """The session; it ends without a heartbeat in `split_heartbeat_seconds`.

    Maximum time for a session's queues to exist and the target to switch; default 120 s.
    """
    if not world.has_deployments:  # a deployment may end it, too
        yield from world.account.lost


def each_target_has_one_chain(world: SplittingWorld) -> Iterator[str]:
    """Each target has one chain of rounds."""
    asked: dict[str, list[float]] = defaultdict(list)
    for message in world.sqs.queues[SPLIT_CONTROL].log:
        command = json.loads(message.body)
        if command["command"] == "reconcile":
            asked[command["target"]].append(message.sent_at)
    for target, times in asked.items():
        often = [first for first, last in zip(times, times[MOST_ROUNDS:], strict=False) if last - first < 60]
        if often:
            yield f"{target} had more than {MOST_ROUNDS} rounds in a minute, first at {often[0]:.0f}"


def only_kills_cost_receives(world: SplittingWorld) -> Iterator[str]:
    """A function that is killed while it holds a message costs a receive, and so does an outage until the forwarding
    has stopped; the redrive policy is its owner's.
    """
    # `split` cannot stop the forwarding while Lambda is away, and does not while the queues of some sessions are.
    away = [one for one in world.calls.outages if one.service in ("sqs", "lambda") or one.hangs]
    for queue in TARGETS.values():
        for message in world.sqs.queues[f"dead-{queue}"].log:
            begin, end = message.sent_at, message.first_received + 60 * message.receives
            faults = sum(begin <= one.at <= end for one in world.kernel.faults)
            if faults < message.receives and not any(one.begin < end and begin < one.end for one in away):
                yield f"{message.body} is a dead letter after {message.receives} receives and {faults} faults"


SPLITTING: tuple[Callable[[SplittingWorld], Iterator[str]], ...] = (
    no_split_message_is_lost,
    a_fifo_message_is_handled_once,
    order_within_a_group_holds,
    messages_are_not_changed,
    nothing_comes_twice_without_faults,
    only_queues_of_this_stage_are_deleted,
    a_use_is_recorded_first,
    a_closed_queue_gets_nothing,
    the_consumer_is_restored,
    a_session_lasts_while_it_beats,
    each_target_has_one_chain,
    only_kills_cost_receives,
    *EVERYWHERE,
)
