"""Builds wheels with native code for the common processors, so that the first grammar of a new machine waits for no compiler.

RTLANG_WHEEL_CODE=0 leaves it out. A wheel is built without it where it cannot be compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path(__file__).parent
FOLDER = "rtlang_grammars/machine/native/code"


class NativeCodeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the files of `rtlang_grammars.machine.native.shipped_code` to a wheel."""

    PLUGIN_NAME = "custom"
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the code; editable installs compile for the processor that they run on."""
        if version == "editable" or os.environ.get("RTLANG_WHEEL_CODE") == "0":
            return
        self._folder = tempfile.TemporaryDirectory()
        command = [sys.executable, "-m", "rtlang_grammars.machine.native.shipped_code", self._folder.name]
        paths = [str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]  # pip passes the build's libraries by it
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            self.app.display_warning(f"this wheel has no native code: {done.stderr}")
            return
        for path in done.stdout.splitlines():
            build_data["force_include"][path] = f"{FOLDER}/{Path(path).name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled."""
        if self._folder is not None:
            self._folder.cleanup()
