"""Experts of a layer: routing, sorting of pairs, grouped products and their sum."""
