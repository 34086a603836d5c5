"""Recurrent layers on a CPU: the causal convolution, the gated recurrence, and the scan of Mamba."""
