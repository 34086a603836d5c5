"""Rules that choose replicas for programs: a simulation of a large fleet, and a measurement of a small one."""
