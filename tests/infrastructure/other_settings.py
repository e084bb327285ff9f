"""Settings of a stage with other values than the defaults, which one synthesis gives to the tests of many settings."""

import json
from pathlib import Path

ACCOUNT = "eu-central-1:123456789012"
# Queues and consumers of every kind to split.
QUEUE_KEY = f"arn:aws:kms:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
SPLITTABLE = {
    "splittable_queues": "orders*,bills.fifo",
    "splittable_dead_letter_queues": "dead-*",
    "splittable_queue_tag": "may=be split",
    "splittable_queue_key_arns": QUEUE_KEY,
    "splittable_targets": "lambda/meme-app,ecs/prod/mailer,ssm//mail/queue,ssm/plain*",
    "splittable_target_roles": "meme-app,mailer-*",
    "splittable_buckets": "uploads,demo-*",
}
# Three clusters, of which one is not of EKS.
SECRET = f"arn:aws:secretsmanager:{ACCOUNT}:secret:k8s/token-AbCdEf"
SECRET_KEY = f"arn:aws:kms:{ACCOUNT}:key/22222222-2222-3333-4444-555555555555"
LAB = {
    "endpoint": "https://k8s.example:6443",
    "ca": (Path(__file__).parent / "splitting" / "lab.pem").read_text(),
    "token_secret": SECRET,
}
CLUSTERS = {"prod": {"eks": "prod-eu"}, "lab": LAB | {"token_secret_key": SECRET_KEY}, "test": {"eks": "Test_1"}}
CONCURRENCY = {
    "route_concurrency": 7,
    "live_concurrency": 13,
    "offer_concurrency": 17,
    "client_concurrency": 11,
    "proxy_concurrency": 12,
    "page_concurrency": 14,
    "live_connect_concurrency": 15,
}
TOPIC = f"arn:aws:sns:{ACCOUNT}:operators"
ASSET_KEY = f"arn:aws:kms:{ACCOUNT}:key/33333333-2222-3333-4444-555555555555"
OTHERWISE: dict[str, str | int] = {
    **SPLITTABLE,
    **CONCURRENCY,
    "kubernetes_clusters": json.dumps(CLUSTERS),
    "stage": "trial",
    "exchange_prefix": "trial-",
    "temporary_queue_prefix": "tmp-",
    "permissions_boundary": "limits",
    "alarm_topic_arn": TOPIC,
    "asset_key_arn": ASSET_KEY,
    "offer_patience_seconds": 60,
    "http_offer_patience_seconds": 19,
    "exchange_retention_seconds": 600,
    "route_timeout_seconds": 20,
    "route_retry_seconds": 25,
    "split_timeout_seconds": 45,
    "live_timeout_seconds": 20,
    "history_interval_hours": 12,
}
