"""What a stage does now: rate, backlog, oldest message, errors and cost of the last hour of each capability."""
