"""Carries: the wire protocol, the server and the remote client."""
