"""Data that operations take as arguments: attention plans, sampler settings, fused steps. Imports nothing else of this library."""
