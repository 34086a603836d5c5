"""Vocabularies of other frameworks over this language, one package each."""
