"""Planning of attention on the host: shared-prefix tiling, work items and tile sizes. Runs no kernel."""
