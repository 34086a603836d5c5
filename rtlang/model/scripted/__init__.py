"""A model whose replies come from a file: its tokenizer, chat template and runner; see docs/testing.md."""
