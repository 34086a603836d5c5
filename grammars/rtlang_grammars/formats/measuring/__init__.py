"""Measures the formats of templates that the catalogue does not know, from the texts that they write for chosen calls."""
