"""The records of requests: one for each, from its arrival to its line in the log."""
