CREATE TABLE numbered AS
SELECT i, hash(i, 1) % 1000 AS what, (hash(i, 2) % 1000000) / 1e6 AS u, (hash(i, 3) % 1000000) / 1e6 AS v,
    make_timestamptz(epoch_us(TIMESTAMPTZ '{first} 00:00:00Z') + (i * {span} // {n}) * 1000) AS moment
FROM range({n}) AS numbers(i);

CREATE TABLE facts AS
SELECT i, what, u, v, moment, 'exchange' AS capability, floor({topics} * u * u * u)::INT AS t
FROM numbered WHERE what < 760
UNION ALL SELECT i, what, u, v, moment, 'rendezvous', NULL FROM numbered WHERE what >= 760 AND what < 960
UNION ALL SELECT i, what, u, v, moment, 'splitting', NULL FROM numbered WHERE what >= 960;

CREATE TABLE events AS
WITH sequenced AS (
    SELECT *, CASE WHEN t IS NOT NULL THEN row_number() OVER (PARTITION BY t ORDER BY i) END AS sequence FROM facts
), named AS (
    SELECT *, CASE
        WHEN capability = 'exchange' THEN CASE WHEN what < 20 THEN 'dead_letter' WHEN what < 40 THEN 'unrouted' ELSE 'routed' END
        WHEN capability = 'rendezvous' THEN CASE WHEN what < 840 THEN 'proxy_poll' WHEN what < 890 THEN 'offer'
            WHEN what < 930 THEN 'answer' WHEN what < 940 THEN 'timeout' ELSE 'proxy_answer' END
        ELSE CASE WHEN what < 990 THEN 'routed' WHEN what < 996 THEN 'returned' WHEN what < 998 THEN 'dead_letter' ELSE 'session' END
    END AS kind FROM sequenced
)
SELECT i, 1::INT AS version, 'e' || lower(hex(hash(i, 4))) || lower(hex(hash(i, 5))) AS event_id,
    CASE WHEN t IS NOT NULL AND hash(i, 6) % 5000 = 0 THEN moment + INTERVAL 3 SECONDS ELSE moment END AS occurred_at,
    capability, kind,
    CASE kind
        WHEN 'routed' THEN CASE WHEN capability = 'splitting' THEN ['session', 'deployed', 'copied'][1 + (hash(i, 7) % 3)::INT]
            WHEN what < 60 THEN 'retried' ELSE 'delivered' END
        WHEN 'unrouted' THEN CASE WHEN what < 35 THEN 'dropped' ELSE 'alternate' END
        WHEN 'dead_letter' THEN 'dead'
        WHEN 'proxy_poll' THEN ['matched', 'idle', 'relay_rejected'][1 + (hash(i, 7) % 3)::INT]
        WHEN 'offer' THEN ['parked', 'denied', 'stale', 'rejected'][1 + (hash(i, 7) % 4)::INT]
        WHEN 'answer' THEN 'delivered' WHEN 'timeout' THEN 'expired' WHEN 'proxy_answer' THEN 'success'
        WHEN 'returned' THEN ['session', 'deployed', 'original'][1 + (hash(i, 7) % 3)::INT]
        ELSE ['started', 'ready', 'ended'][1 + (hash(i, 7) % 3)::INT]
    END AS outcome,
    CASE WHEN kind = 'dead_letter' THEN ['the queue is gone', 'too many attempts'][1 + (hash(i, 8) % 2)::INT]
        WHEN kind = 'timeout' THEN ['no proxy', 'silent proxy'][1 + (hash(i, 8) % 2)::INT] END AS reason,
    CASE WHEN kind <> 'session' THEN 'm' || lower(hex(hash(i, 9))) END AS message_id,
    CASE WHEN t IS NOT NULL THEN 'shop.' || (t % 8) || '.orders.' || t END AS topic,
    sequence::BIGINT AS sequence,
    CASE capability WHEN 'exchange' THEN 'events.fifo' WHEN 'splitting' THEN 'orders-' || (i % 5)
        ELSE CASE WHEN kind LIKE 'proxy%' THEN 'proxy' ELSE ['http', 'sqs', 'ampcache'][1 + (hash(i, 10) % 3)::INT] END
    END AS source,
    CASE WHEN capability = 'exchange' AND kind <> 'unrouted' THEN 'q_' || (t % 50)
        WHEN capability = 'splitting' AND kind IN ('routed', 'returned') THEN 'mirrord-' || (i % 11) END AS destination,
    CASE WHEN kind <> 'session' THEN 100 + (hash(i, 11) % 4000)::BIGINT END AS size_bytes,
    CASE WHEN kind IN ('routed', 'dead_letter', 'answer', 'timeout') OR kind = 'session'
        THEN 5 + floor(400 * v * v * v)::BIGINT END AS latency_ms,
    CASE WHEN kind IN ('routed', 'answer') THEN 1 + (hash(i, 12) % 40 = 0)::INT END AS attempt,
    CASE capability
        WHEN 'exchange' THEN MAP {{'publisher': 'p' || (i % 20)}}
        WHEN 'splitting' THEN MAP {{'target': 'lambda:orders', 'session': 's' || (i % 7)}}
        ELSE CASE WHEN kind = 'proxy_poll' THEN MAP {{'nat': ['restricted', 'unrestricted', 'unknown'][1 + (hash(i, 13) % 3)::INT],
                'country': ['DE', 'US', 'IR', '??'][1 + (hash(i, 14) % 4)::INT],
                'proxy_type': ['standalone', 'webext', 'badge', 'iptproxy'][1 + (hash(i, 15) % 4)::INT],
                'relay_pattern': ['with', 'without'][1 + (hash(i, 16) % 2)::INT], 'held': 'false',
                'party': 'h' || (hash(i, 17) % 20000)}}
            ELSE MAP {{'nat': ['restricted', 'unrestricted', 'unknown'][1 + (hash(i, 13) % 3)::INT],
                'country': ['DE', 'US', 'IR', '??'][1 + (hash(i, 14) % 4)::INT],
                'proxy_type': ['standalone', 'webext', 'badge', 'iptproxy'][1 + (hash(i, 15) % 4)::INT]}} END
    END AS labels
FROM named WHERE t IS NULL OR hash(i, 18) % 1000 <> 0;
