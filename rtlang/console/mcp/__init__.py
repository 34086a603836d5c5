"""`rtlang mcp`: programs as tools of an MCP server."""
