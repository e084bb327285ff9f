"""The values of live: sessions, what their messages cause, and events of the history."""
