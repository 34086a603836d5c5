"""The weights of `rtlang:tiny` and their model card. How they were made: examples/tiny_model."""
