"""Formats of templates that the catalogue does not know, from what the templates write for chosen calls."""
