"""The arguments of a call: what may be written, and what was."""
