"""The Responses API: bodies as chats, replies as items and events, and the responses that later requests continue."""
