"""The history: the event record that all capabilities write and all jobs read, and the rules of replays."""
