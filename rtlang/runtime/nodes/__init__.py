"""What the kinds of nodes do when they run: model calls, blocks, decisions."""
