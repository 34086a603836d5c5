"""The wire protocol rtlang.v1 without I/O: messages, serialization, the event codec and field checks, shared by client and server."""
