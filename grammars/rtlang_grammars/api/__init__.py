"""Entry points: creating a backend, inspecting a constraint, precompiling native code."""
