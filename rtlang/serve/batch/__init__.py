"""Files and batches: requests in a file, run beside live ones."""
