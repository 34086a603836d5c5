"""Languages of the string formats of JSON Schema."""
