"""Object code for the common processors, made when a wheel is built: `python -m rtlang_grammars.machine.native.shipped_code FOLDER`.

The code is compiled from the sources that the wheel has, and named by them as all code is (`code_files`). A process takes it if its
processor has all that the code uses, else it compiles. Only the architecture of the building machine is served.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

from rtlang_grammars.machine.native import code_files, native_code


class Processor(NamedTuple):
    """Processors that code is made for: the name that LLVM gives them, and the features that all of them have."""

    name: str
    features: tuple[str, ...]


# x86-64-v3: Intel's since Haswell (2013), AMD's since Excavator (2015), by the psABI's list.
_X86_64 = (
    *("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2"),
    *("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
PROCESSORS = {
    "x86_64": Processor("x86-64-v3", _X86_64),
    "amd64": Processor("x86-64-v3", _X86_64),
    "aarch64": Processor("generic", ("neon",)),
    "arm64": Processor("generic", ("neon",)),
}
"""By the name of the machine, in lower case."""


def build(folder: Path) -> list[Path]:
    """Write the code of all groups for the common processors of this architecture; returns the files, none for other architectures.

    Code that was built before from the same sources is copied.
    """
    processor = PROCESSORS.get(platform.machine().lower())
    if processor is None:
        return []
    # numba reads these when it is first imported, with the first group.
    os.environ["NUMBA_CPU_NAME"], features = processor.name, ",".join(f"+{each}" for each in processor.features)
    os.environ["NUMBA_CPU_FEATURES"] = features
    found = []
    with code_files.turn():
        for group in native_code.GROUPS:
            digest = native_code.digest(group)
            code = code_files.find(group, digest, processor.name)
            if code is None:
                code = native_code.compile_group(group)
                assert (code.cpu, code.features) == (processor.name, features), "numba was imported before"
                code_files.keep(group, digest, code)
            found.append(code_files.write(folder, group, digest, code))
    return found


if __name__ == "__main__":
    for path in build(Path(sys.argv[1])):
        print(path)
