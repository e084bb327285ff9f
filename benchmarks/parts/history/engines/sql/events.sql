-- As in glue_jobs/transforms/events.py: the earliest duplicate, then the lowest hash of all fields.
COPY (
    SELECT {columns}, CAST(occurred_at AS DATE) AS day FROM (
        SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY occurred_at, {tie}) AS copy FROM {raw}
    ) WHERE copy = 1 ORDER BY day, capability, topic, sequence
) TO '{out}/events' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day))
