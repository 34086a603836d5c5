"""States, rows and actions of a grammar: the tables and their layout."""
