"""Logs, threads and addresses of a process."""
