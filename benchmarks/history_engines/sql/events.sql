-- As glue_jobs/transforms/events.py: the earliest of the copies, then something of all that they say.
COPY (
    SELECT {columns}, CAST(occurred_at AS DATE) AS day FROM (
        SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY occurred_at, {tie}) AS copy FROM {raw}
    ) WHERE copy = 1 ORDER BY day, capability, topic, sequence
) TO '{out}/events' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day))
