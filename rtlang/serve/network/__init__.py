"""Sockets, TLS and access control."""
