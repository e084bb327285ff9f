"""Control: capabilities take commands from queues, and reply in queues of those who ask."""
