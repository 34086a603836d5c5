"""The tokenizers that GGUF files describe, as the content of tokenizer.json."""
