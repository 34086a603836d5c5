"""Anthropic's Messages API: its bodies as bodies of chat completions, and its replies."""
