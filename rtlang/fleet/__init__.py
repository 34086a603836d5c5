"""Engines in processes of their own, on one machine or on Ray, which serve whole programs."""
