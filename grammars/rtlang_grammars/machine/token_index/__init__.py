"""A vocabulary prepared for masks: token tries and slices of tokens."""
