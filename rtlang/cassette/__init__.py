"""Recordings of outcomes: their files, their keys, and the runtimes that write and read them."""
