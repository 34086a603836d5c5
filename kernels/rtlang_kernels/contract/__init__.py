"""Data that operations take: attention plans, sampler settings, fused steps. Imports nothing else of this library."""
