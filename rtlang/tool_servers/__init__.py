"""Sessions with MCP servers, for programs and for the server's own rounds of tool calls."""
