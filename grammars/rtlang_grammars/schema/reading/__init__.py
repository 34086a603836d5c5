"""Reading a JSON Schema: dialects, references, options, the report of every keyword."""
