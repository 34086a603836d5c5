"""Tables over bytes, the compiled functions that walk them, masks and matchers."""
