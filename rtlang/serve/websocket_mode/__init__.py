"""WebSocket mode of the Responses API: one connection at `/v1/responses` for the turns of an agent."""
