-- Time and id are concatenated to one sortable text: with a struct, DuckDB is about ten times slower.
WITH facts AS (
    SELECT day, source AS exchange, topic, destination AS queue, sequence, message_id,
        epoch_us(occurred_at)::VARCHAR || event_id AS came,
        CASE WHEN kind = 'routed' AND outcome <> 'retried' THEN 'delivered' WHEN kind = 'routed' THEN 'waiting'
            WHEN kind = 'dead_letter' THEN 'dead' ELSE 'elsewhere' END AS state
    FROM events WHERE topic IS NOT NULL AND sequence IS NOT NULL AND kind IN ('routed', 'dead_letter', 'unrouted', 'logged')
), numbers AS (
    SELECT exchange, topic, queue, sequence,
        min(came) FILTER (state = 'delivered') AS first, max(came) FILTER (state = 'delivered') AS again,
        count(*) FILTER (state = 'delivered') AS copies, bool_or(state = 'dead') AS is_dead, bool_or(state = 'waiting') AS is_waiting
    FROM facts GROUP BY ALL
), placed AS (
    SELECT *, dense_rank() OVER (PARTITION BY exchange, topic ORDER BY sequence) AS place FROM numbers
), counted AS (
    SELECT *, count(*) FILTER (first IS NULL AND is_dead) OVER below AS dead,
        count(*) FILTER (first IS NULL AND is_waiting AND NOT is_dead) OVER below AS waiting
    FROM placed WHERE queue IS NOT NULL
    WINDOW below AS (PARTITION BY exchange, topic, queue ORDER BY sequence DESC ROWS UNBOUNDED PRECEDING)
), beside AS (
    SELECT *, lag(sequence) OVER upwards AS next, lag(place) OVER upwards AS next_place, lag(dead) OVER upwards AS next_dead,
        lag(waiting) OVER upwards AS next_waiting, lag(first) OVER upwards AS next_first, min(first) OVER above AS overtook
    FROM counted WHERE first IS NOT NULL
    WINDOW upwards AS (PARTITION BY exchange, topic, queue ORDER BY sequence DESC),
        above AS (PARTITION BY exchange, topic, queue ORDER BY sequence DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), seen AS (
    SELECT day, exchange, topic, queue, min(sequence) AS low, max(sequence) AS high, count(*) AS number,
        arg_min(came, sequence) AS first, arg_max(came, sequence) AS last
    FROM facts WHERE state = 'delivered' AND queue IS NOT NULL GROUP BY day, exchange, topic, queue
), messages AS (
    SELECT exchange, topic, queue, min(came) AS first, max(came) AS again, min(sequence) AS lowest, max(sequence) AS highest
    FROM facts WHERE state = 'delivered' AND message_id IS NOT NULL GROUP BY exchange, topic, queue, message_id
), found AS (
    SELECT next_first AS dated, exchange, topic, queue, 'gap' AS finding, sequence + 1 AS first_sequence,
        next - 1 AS last_sequence, next - sequence - 1 AS number, dead - next_dead AS dead, waiting - next_waiting AS waiting,
        next_place - place - 1 - (dead - next_dead) - (waiting - next_waiting) AS elsewhere,
        next - sequence - (next_place - place) AS nowhere, first AS before, next_first AS after
    FROM beside WHERE next - sequence > 1
    UNION ALL SELECT first, exchange, topic, queue, 'reordered', sequence, sequence, 1, NULL, NULL, NULL, NULL, overtook, first
        FROM beside WHERE overtook[:16] < first[:16]
    UNION ALL SELECT again, exchange, topic, queue, 'duplicate', sequence, sequence, 1, NULL, NULL, NULL, NULL, first, again
        FROM beside WHERE copies > 1 AND first[17:] <> again[17:]
    UNION ALL SELECT again, exchange, topic, queue, 'duplicate', highest, highest, 1, NULL, NULL, NULL, NULL, first, again
        FROM messages WHERE lowest <> highest
    UNION ALL SELECT first, exchange, topic, queue, 'seen', low, high, number, NULL, NULL, NULL, NULL, first, last FROM seen
)
SELECT make_timestamptz(dated[:16]::BIGINT)::DATE AS day, exchange, topic, queue, finding, first_sequence, last_sequence, number,
    dead, waiting, elsewhere, nowhere, before[17:] AS before_event_id, make_timestamptz(before[:16]::BIGINT) AS before_at,
    after[17:] AS after_event_id, make_timestamptz(after[:16]::BIGINT) AS after_at
FROM found
UNION ALL SELECT day, NULL, NULL, NULL, 'audited', NULL, NULL, coalesce(sum(number), 0)::BIGINT, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL FROM (SELECT DISTINCT day FROM events) LEFT JOIN seen USING (day) GROUP BY day
