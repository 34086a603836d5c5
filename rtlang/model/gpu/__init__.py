"""Running steps on an accelerator."""
