"""The identity of a request and the account of its cost."""
