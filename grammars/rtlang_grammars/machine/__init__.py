"""The machine of the grammar engine: tables over bytes, the compiled steps through them, masks and matchers."""
