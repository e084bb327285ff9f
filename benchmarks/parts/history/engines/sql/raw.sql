CREATE VIEW raw AS
SELECT *, strftime(arrived, '%Y-%m-%d') AS dt, strftime(arrived, '%H') AS hour FROM (
    SELECT * EXCLUDE (i), occurred_at AS arrived FROM events
    UNION ALL
    SELECT * EXCLUDE (i) REPLACE (occurred_at + to_seconds(2 * (hash(i, 20) % 2)::INT) AS occurred_at), occurred_at
    FROM events WHERE hash(i, 19) % 100 = 0
)
