WITH facts AS (
    SELECT day, occurred_at, event_id, kind, outcome, reason, source, latency_ms,
        coalesce(labels['nat'], 'unknown') AS nat, coalesce(labels['country'], '??') AS country,
        coalesce(labels['proxy_type'], 'unknown') AS proxy_type,
        labels['relay_pattern'] AS relay_pattern, labels['party'] AS party
    FROM events WHERE capability = 'rendezvous'
), flags AS (
    SELECT *, kind = 'proxy_poll' AS is_poll, relay_pattern IS NOT DISTINCT FROM 'with' AS is_with,
        (kind = 'offer' AND outcome IN ('denied', 'stale')) OR (kind = 'timeout' AND reason IS NOT DISTINCT FROM 'no proxy') AS is_denied,
        kind = 'timeout' AND reason IS DISTINCT FROM 'no proxy' AS is_silent, kind = 'answer' AS is_match,
        nat = 'unrestricted' AS is_open
    FROM facts
), lines AS (
    SELECT day, 'snowflake-idle-count' AS metric, NULL AS label FROM flags WHERE is_poll AND outcome = 'idle'
    UNION ALL SELECT day, 'snowflake-proxy-poll-with-relay-url-count', NULL FROM flags WHERE is_poll AND is_with
    UNION ALL SELECT day, 'snowflake-proxy-poll-without-relay-url-count', NULL FROM flags WHERE is_poll AND NOT is_with
    UNION ALL SELECT day, 'snowflake-proxy-rejected-for-relay-url-count', NULL FROM flags WHERE is_poll AND outcome = 'relay_rejected'
    UNION ALL SELECT day, 'client-denied-count', NULL FROM flags WHERE is_denied
    UNION ALL SELECT day, 'client-restricted-denied-count', NULL FROM flags WHERE is_denied AND NOT is_open
    UNION ALL SELECT day, 'client-unrestricted-denied-count', NULL FROM flags WHERE is_denied AND is_open
    UNION ALL SELECT day, 'client-snowflake-match-count', NULL FROM flags WHERE is_match
    UNION ALL SELECT day, 'client-snowflake-timeout-count', NULL FROM flags WHERE is_silent
    UNION ALL SELECT day, 'client-' || source || '-count', NULL FROM flags
        WHERE (is_denied OR is_match OR is_silent) AND source IN ('http', 'ampcache', 'sqs')
    UNION ALL SELECT day, 'client-' || source || '-ips', country FROM flags
        WHERE (is_denied OR is_match OR is_silent) AND source IN ('http', 'ampcache', 'sqs')
), seen AS (
    SELECT * FROM facts WHERE kind = 'proxy_poll' AND outcome <> 'relay_rejected' AND party IS NOT NULL
), parties AS (
    SELECT day, 'snowflake-ips-total' AS metric, party FROM seen
    UNION ALL SELECT day, 'snowflake-ips-nat-' || nat, party FROM seen
    UNION ALL SELECT day, 'snowflake-ips-' || proxy_type, party FROM seen
        WHERE proxy_type IN ('standalone', 'webext', 'badge', 'iptproxy', 'bloco')
), firsts AS (
    SELECT day, party, first(country ORDER BY occurred_at, event_id) AS label FROM seen GROUP BY day, party
), counted AS (
    SELECT day, metric, label, count(*) AS exact FROM lines GROUP BY ALL
    UNION ALL SELECT day, metric, NULL, count(DISTINCT party) FROM parties GROUP BY day, metric
    UNION ALL SELECT day, 'snowflake-ips', label, count(*) FROM firsts GROUP BY day, label
    UNION ALL SELECT day, unnest({count_lines}), NULL, 0 FROM (SELECT DISTINCT day FROM events)
), totals AS (
    SELECT day, metric, label, sum(exact)::BIGINT AS exact FROM counted GROUP BY ALL
), times AS (
    {times}
)
SELECT day, metric, label, exact,
    CASE WHEN metric LIKE 'client-%' OR metric LIKE '%-count' THEN exact + 7 - (exact + 7) % 8 ELSE exact END AS shown
FROM (SELECT * FROM totals UNION ALL SELECT * FROM times)
