"""The recording language: programs to request graphs, and running them. Loads no torch."""
