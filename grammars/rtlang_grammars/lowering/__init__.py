"""Lowers shapes, languages and grammars to the tables of the machine."""
