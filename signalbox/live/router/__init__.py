"""The router of live: subscribers of a realm, and the events that they receive."""
