"""The transport with which kombu's programs, such as Celery, use a stage as their broker."""
