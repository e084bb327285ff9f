WITH publications AS (
    SELECT day, date_trunc('hour', occurred_at) AS hour, source AS exchange, topic, labels['publisher'] AS publisher, message_id,
        count(*) FILTER (kind = 'routed' AND outcome = 'delivered') AS copies,
        count(*) FILTER (kind = 'routed' AND outcome = 'retried') AS retried,
        count(*) FILTER (kind = 'dead_letter') AS dead,
        count(*) FILTER (kind = 'unrouted' AND outcome = 'dropped') AS dropped,
        count(*) FILTER (kind = 'unrouted' AND outcome = 'alternate') AS alternate,
        count(*) FILTER (kind = 'logged') AS logged,
        min(coalesce(size_bytes, 0)) AS bytes_in,
        sum(CASE WHEN kind = 'routed' AND outcome = 'delivered' THEN coalesce(size_bytes, 0) ELSE 0 END) AS bytes_out
    FROM events WHERE kind IN ('routed', 'unrouted', 'logged', 'dead_letter') AND topic IS NOT NULL GROUP BY ALL
)
SELECT day, hour, exchange, topic, publisher, count(*) AS publications, sum(copies)::BIGINT AS copies,
    sum(retried)::BIGINT AS retried, sum(dead)::BIGINT AS dead, sum(dropped)::BIGINT AS dropped,
    sum(alternate)::BIGINT AS alternate, sum(logged)::BIGINT AS logged, sum(bytes_in)::BIGINT AS bytes_in, sum(bytes_out)::BIGINT AS bytes_out
FROM publications GROUP BY ALL
