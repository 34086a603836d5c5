"""Rounds float checkpoints to few bits: scales, calibration, the written checkpoint and a report of the error."""
