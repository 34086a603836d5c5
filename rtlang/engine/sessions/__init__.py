"""Sessions: chains of requests of one principal in which each prompt begins with the sequence of an earlier request."""
