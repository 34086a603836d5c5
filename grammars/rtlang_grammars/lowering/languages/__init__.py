"""Lowers regular languages and free text to tables."""
