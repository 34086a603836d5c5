"""Ollama's API for its published clients, translated to and from chat completions and completions."""
