"""LLVM code generation for the CPU kernels: scalar intrinsics and vector steps."""
