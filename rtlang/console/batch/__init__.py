"""`rtlang batch`."""
