"""Passes over recorded request graphs."""
