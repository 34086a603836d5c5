"""Token sequences and the text of prompts, without requests."""
