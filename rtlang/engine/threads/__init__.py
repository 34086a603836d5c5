"""Work on other threads, in fair turns between owners."""
