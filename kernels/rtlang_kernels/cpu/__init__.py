"""The CPU backend: vector kernels compiled with numba and LLVM."""
