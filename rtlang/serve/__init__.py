"""The server: WebSocket streams and HTTP routes."""
