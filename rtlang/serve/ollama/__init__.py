"""Ollama's API, for its clients: bodies become those of chat completions and completions, and replies theirs."""
