"""The jobs of history: reports with their folders and tables, and what starts by itself."""

REPORTS = {
    "Report": ("rendezvous", "rendezvous_daily"),
    "SplitReport": ("splitting", "split_daily"),
    "TopicReport": ("topics", "topic_hourly"),
    "DeliveryReport": ("delivery", "delivery_hourly"),
    "OrderAudit": ("order", "order_audit"),
    "CostReport": ("cost", "cost_daily"),
}
STARTED = {"CompactHours": "CompactHistory", "Day": "Day", "ExportLogs": "ExportLogs"}
