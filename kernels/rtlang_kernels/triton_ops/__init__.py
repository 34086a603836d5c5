"""The Triton column: kernels for a GPU, and what the host prepares for them. Importing any file with kernels imports triton."""
