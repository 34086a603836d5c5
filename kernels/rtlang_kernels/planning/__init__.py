"""Planning on the host: shared-prefix tiling, work items and tile sizes of attention, states of decoding steps. Runs no kernel."""
