"""HTTP: routes, access, error responses, request bodies and server-sent events."""
