"""Control queues: commands to a capability's control plane, and the replies to clients' reply queues."""
