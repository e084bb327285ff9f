-- Windows and groups see only integers: `s` is a subscriber (exchange, topic and queue), `k` its topic, `us` microseconds.
-- The ids of events are read at the end, for the few events that a finding names.
WITH numbered AS (
    SELECT day, source AS exchange, topic, coalesce(destination, '') AS queue, sequence, message_id, event_id, epoch_us(occurred_at) AS us,
        CASE WHEN kind = 'routed' AND outcome <> 'retried' THEN 1 WHEN kind = 'routed' THEN 2 WHEN kind = 'dead_letter' THEN 3 ELSE 4 END AS state
    FROM events WHERE topic IS NOT NULL AND sequence IS NOT NULL AND kind IN ('routed', 'dead_letter', 'unrouted', 'logged')
), subscribers AS MATERIALIZED (
    SELECT *, dense_rank() OVER (ORDER BY exchange, topic)::INTEGER AS k, (row_number() OVER ())::INTEGER AS s
    FROM (SELECT DISTINCT exchange, topic, queue FROM numbered)
), facts AS MATERIALIZED (
    SELECT k, s, queue <> '' AS is_queued, day, sequence, state, us, hash(message_id) AS message, message_id IS NOT NULL AS has_id
    FROM numbered JOIN subscribers USING (exchange, topic, queue)
), came AS MATERIALIZED (
    SELECT s, day, sequence, us, message, has_id FROM facts WHERE state = 1 AND is_queued
), numbers AS MATERIALIZED (
    SELECT k, s, is_queued, sequence, min(us) FILTER (state = 1) AS first_at, max(us) FILTER (state = 1) AS again_at,
        count(*) FILTER (state = 1) AS copies, bool_or(state = 3) AS is_dead, bool_or(state = 2) AS is_waiting
    FROM facts GROUP BY ALL
), placed AS (
    SELECT *, dense_rank() OVER (PARTITION BY k ORDER BY sequence) AS place FROM numbers
), neighbours AS MATERIALIZED (
    SELECT s, sequence, first_at, again_at, copies, place, lead(sequence) OVER upwards AS next, lead(place) OVER upwards AS next_place,
        lead(first_at) OVER upwards AS next_at, min(first_at) OVER above AS overtook_at
    FROM placed WHERE is_queued AND first_at IS NOT NULL
    WINDOW upwards AS (PARTITION BY s ORDER BY sequence),
        above AS (PARTITION BY s ORDER BY sequence ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
    QUALIFY next - sequence > 1 OR overtook_at < first_at OR copies > 1
), causes AS (
    -- The few lost numbers look for their gap; running counts of them over all numbers take most of the time otherwise.
    SELECT gap.s, gap.sequence, count(*) FILTER (is_dead) AS dead, count(*) FILTER (NOT is_dead) AS waiting
    FROM (SELECT s, sequence, is_dead FROM numbers WHERE is_queued AND first_at IS NULL AND (is_dead OR is_waiting)) AS lost
    ASOF JOIN (SELECT s, sequence, next FROM neighbours WHERE next - sequence > 1) AS gap ON lost.s = gap.s AND lost.sequence > gap.sequence
    WHERE lost.sequence < gap.next GROUP BY ALL
), days AS (
    SELECT day, s, min(sequence) AS low, max(sequence) AS high, count(*) AS number FROM came GROUP BY ALL
), seen AS MATERIALIZED (
    SELECT day, s, low, high, number, min(us) FILTER (sequence = low) AS low_at, max(us) FILTER (sequence = high) AS high_at
    FROM came JOIN days USING (day, s) WHERE sequence = low OR sequence = high GROUP BY ALL
), wanted AS (
    SELECT s, first_at AS us FROM neighbours UNION SELECT s, next_at FROM neighbours WHERE next - sequence > 1
    UNION SELECT s, overtook_at FROM neighbours WHERE overtook_at < first_at UNION SELECT s, again_at FROM neighbours WHERE copies > 1
    UNION SELECT s, low_at FROM seen UNION SELECT s, high_at FROM seen
), named AS MATERIALIZED (
    SELECT s, sequence, us, min(event_id) AS least, max(event_id) AS greatest
    FROM numbered JOIN subscribers USING (exchange, topic, queue) JOIN wanted USING (s, us)
    WHERE state = 1 GROUP BY ALL
), twice AS (
    SELECT s, message FROM came WHERE has_id GROUP BY ALL HAVING min(sequence) <> max(sequence)
), messages AS (
    -- Of equal hashes, the messages are compared.
    SELECT s, max(sequence) AS highest, min((us, event_id)) AS first, max((us, event_id)) AS again
    FROM (SELECT *, hash(message_id) AS message FROM numbered) JOIN subscribers USING (exchange, topic, queue) JOIN twice USING (s, message)
    WHERE state = 1 AND queue <> '' GROUP BY s, message_id HAVING min(sequence) <> max(sequence)
), found AS (
    SELECT next_at AS dated, gap.s, 'gap' AS finding, gap.sequence + 1 AS first_sequence, next - 1 AS last_sequence,
        next - gap.sequence - 1 AS number, coalesce(dead, 0) AS dead, coalesce(waiting, 0) AS waiting,
        next_place - place - 1 - coalesce(dead, 0) - coalesce(waiting, 0) AS elsewhere, next - gap.sequence - (next_place - place) AS nowhere,
        below.least AS before_id, first_at AS before_at, above.least AS after_id, next_at AS after_at
    FROM neighbours AS gap
    LEFT JOIN causes ON causes.s = gap.s AND causes.sequence = gap.sequence
    JOIN named AS below ON below.s = gap.s AND below.sequence = gap.sequence AND below.us = first_at
    JOIN named AS above ON above.s = gap.s AND above.sequence = next AND above.us = next_at
    WHERE next - gap.sequence > 1
    UNION ALL SELECT first_at, late.s, 'reordered', late.sequence, late.sequence, 1, NULL, NULL, NULL, NULL,
        min(higher.least), overtook_at, any_value(own.least), first_at
    FROM neighbours AS late
    JOIN named AS own ON own.s = late.s AND own.sequence = late.sequence AND own.us = first_at
    JOIN named AS higher ON higher.s = late.s AND higher.us = overtook_at AND higher.sequence > late.sequence
    WHERE overtook_at < first_at GROUP BY late.s, late.sequence, first_at, overtook_at
    UNION ALL SELECT again_at, both_.s, 'duplicate', both_.sequence, both_.sequence, 1, NULL, NULL, NULL, NULL,
        one.least, first_at, other.greatest, again_at
    FROM neighbours AS both_
    JOIN named AS one ON one.s = both_.s AND one.sequence = both_.sequence AND one.us = first_at
    JOIN named AS other ON other.s = both_.s AND other.sequence = both_.sequence AND other.us = again_at
    WHERE copies > 1 AND one.least <> other.greatest
    UNION ALL SELECT again[1], s, 'duplicate', highest, highest, 1, NULL, NULL, NULL, NULL, first[2], first[1], again[2], again[1]
    FROM messages
    UNION ALL SELECT low_at, seen.s, 'seen', low, high, number, NULL, NULL, NULL, NULL, first.least, low_at, last.greatest, high_at
    FROM seen
    JOIN named AS first ON first.s = seen.s AND first.sequence = low AND first.us = low_at
    JOIN named AS last ON last.s = seen.s AND last.sequence = high AND last.us = high_at
)
SELECT make_timestamptz(dated)::DATE AS day, exchange, topic, queue, finding, first_sequence, last_sequence, number,
    dead, waiting, elsewhere, nowhere, before_id AS before_event_id, make_timestamptz(before_at) AS before_at,
    after_id AS after_event_id, make_timestamptz(after_at) AS after_at
FROM found JOIN subscribers USING (s)
UNION ALL SELECT day, NULL, NULL, NULL, 'audited', NULL, NULL, coalesce(sum(number), 0)::BIGINT, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL FROM (SELECT DISTINCT day FROM events) LEFT JOIN days USING (day) GROUP BY day
