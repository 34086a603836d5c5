"""The events of requests and of the engine as streams of HTTP responses."""
