"""Host-side machinery: compilation with numba, transfers to a device, capture of CUDA graphs. Imports nothing else of this library."""
