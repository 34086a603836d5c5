"""Python types, schemas, patterns and grammars as constraints on generated text."""
