"""Celery with a stage as its broker, beside kombu's `sqs://` on the same emulator and RabbitMQ."""
