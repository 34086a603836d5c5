"""Views of runs: their records for pictures, and displays that follow a run."""
