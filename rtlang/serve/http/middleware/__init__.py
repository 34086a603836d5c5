"""Layers around the routes: access, the shape of errors, and a record for each request."""
