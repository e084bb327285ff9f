"""Exchange: topic exchanges; what is published reaches every queue with a binding that matches."""
