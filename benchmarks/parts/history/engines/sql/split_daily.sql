WITH facts AS (
    SELECT day, kind, outcome, reason, latency_ms, source AS queue, labels['session'] AS session
    FROM events WHERE capability = 'splitting'
), totals AS (
    SELECT day, kind || '-total' AS metric, outcome AS label, 1 AS value FROM facts
    UNION ALL SELECT day, metric, label, 0 FROM (SELECT DISTINCT day FROM events), (VALUES {totals}) AS known(metric, label)
), timed AS (
    SELECT day, 'time-to-route-ms' AS metric, queue, latency_ms FROM facts
        WHERE kind = 'routed' AND outcome <> 'copied' AND latency_ms IS NOT NULL
    UNION ALL SELECT day, 'time-to-route-ms', NULL, latency_ms FROM facts
        WHERE kind = 'routed' AND outcome <> 'copied' AND latency_ms IS NOT NULL
    UNION ALL SELECT day, 'time-to-ready-ms', NULL, latency_ms FROM facts
        WHERE kind = 'session' AND outcome = 'ready' AND latency_ms IS NOT NULL
), percentiles AS (
    SELECT day, metric, queue, unnest(['p50', 'p95', 'p99']) AS label,
        unnest(quantile_cont(latency_ms, [0.5, 0.95, 0.99])) AS value
    FROM timed GROUP BY day, metric, queue
)
SELECT day, metric, NULL AS queue, NULL AS session, label, sum(value)::BIGINT AS value FROM totals GROUP BY day, metric, label
UNION ALL SELECT day, kind, queue, session, CASE kind WHEN 'dead_letter' THEN reason ELSE outcome END, count(*)
    FROM facts WHERE kind <> 'session' GROUP BY ALL
UNION ALL SELECT day, metric, queue, NULL, label, round(round(value, 6))::BIGINT FROM percentiles
