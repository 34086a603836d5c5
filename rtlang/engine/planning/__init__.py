"""What a step will cost, and what to put into it."""
