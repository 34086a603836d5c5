"""The Triton backend, for GPUs. Modules here import triton when they are imported."""
