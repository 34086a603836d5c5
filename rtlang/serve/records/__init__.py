"""What a server knows of each request: one record from its door to its line in the log."""
