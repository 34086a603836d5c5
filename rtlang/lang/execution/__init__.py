"""Running a program on a target: sessions, batches, streams and results."""
