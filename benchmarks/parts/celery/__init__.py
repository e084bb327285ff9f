"""Celery with a stage as its broker, compared with kombu's `sqs://` on the same emulator and RabbitMQ."""
