"""Settings that must be there before any test file is imported."""

from __future__ import annotations

import os

# The kernels for a GPU run in triton's interpreter, which is chosen when triton is first imported, by whatever test file that is.
# Tests of the kernels run natively where RTLANG_TEST_DEVICE=cuda asks for it.
if os.environ.get("RTLANG_TEST_DEVICE", "cpu") == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
