WITH facts AS (
    SELECT day, date_trunc('hour', occurred_at) AS hour, capability, source, destination, reason, attempt, latency_ms, size_bytes,
        CASE WHEN (kind = 'routed' AND outcome <> 'retried') OR kind = 'answer'
                OR (kind = 'delivered' AND outcome = 'posted') THEN 'delivered'
            WHEN kind = 'routed' OR (kind = 'delivered' AND outcome = 'failed') THEN 'retried' WHEN kind = 'dead_letter' THEN 'dead' END AS state
    FROM events WHERE kind IN ('routed', 'answer', 'dead_letter')
        OR (kind = 'delivered' AND outcome IN ('posted', 'failed'))
), summed AS (
    SELECT day, hour, capability, source, destination, CASE WHEN state = 'dead' THEN reason END AS reason,
        count(*) FILTER (state = 'delivered') AS delivered,
        count(*) FILTER (state = 'delivered' AND attempt > 1) AS again,
        count(*) FILTER (state = 'retried') AS retried, count(*) FILTER (state = 'dead') AS dead,
        coalesce(sum(size_bytes) FILTER (state = 'delivered'), 0)::BIGINT AS bytes,
        quantile_cont(latency_ms, [0.5, 0.95, 0.99]) FILTER (state = 'delivered' AND latency_ms IS NOT NULL) AS times,
        max(latency_ms) FILTER (state = 'delivered') AS max_ms
    FROM facts GROUP BY ALL
)
SELECT * EXCLUDE (times, max_ms), round(round(times[1], 6))::BIGINT AS p50_ms, round(round(times[2], 6))::BIGINT AS p95_ms,
    round(round(times[3], 6))::BIGINT AS p99_ms, max_ms
FROM summed
