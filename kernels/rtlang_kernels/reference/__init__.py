"""What each operation means: plain torch in float32, slow and obvious."""
