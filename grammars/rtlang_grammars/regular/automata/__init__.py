"""Automata of regular languages over code points and bytes."""
