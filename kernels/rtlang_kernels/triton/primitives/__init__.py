"""The jit decorator and device functions that several kernels share."""
