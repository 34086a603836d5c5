"""The growing value of a JSON text that is being generated: which fields are final, which string grows."""
