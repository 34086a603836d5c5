"""Vector code and matrix tiles of CPU attention, over packed pages."""
