"""Measures how the memory of a process grows over many prompts of varied length.

python -m rtlang_bench.prompt_memory --prompts 1000

Prints after each tenth the resident memory without the KV pool, the memory that the C library has in use, and the freed memory that it
keeps: step buffers of many sizes leave holes, while compiled kernels and caches stay in use.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rtlang.contract.config import RuntimeConfig
from rtlang.contract.params import SamplingParams
from rtlang.runtime.runtime import Runtime

_STATM = Path("/proc/self/statm")


class _Heap(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keep",
        )
    ]


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes after so many prompts: resident, in use by the C library, mapped for single large blocks, and freed but kept."""

    num_prompts: int
    resident: int
    in_use: int
    mapped: int
    freed: int

    def __str__(self) -> str:
        mib = [f"{each / 2**20:8.1f}" for each in (self.resident, self.in_use, self.mapped, self.freed)]
        return f"{self.num_prompts:8} {' '.join(mib)}"


HEADER = " prompts resident   in use   mapped    freed  (MiB)"


def sample(num_prompts: int) -> Sample:
    """The memory of this process now; zero for each figure that the system does not report."""
    resident = int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if _STATM.is_file() else 0
    heap = _Heap()
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is not None and hasattr(library, "mallinfo2"):
        library.mallinfo2.restype = _Heap
        heap = library.mallinfo2()
    return Sample(num_prompts, resident, heap.uordblks, heap.hblkhd, heap.fordblks)


def measure(
    config: RuntimeConfig, num_prompts: int, *, longest: int | None = None, num_samples: int = 10, seed: int = 0
) -> Iterator[Sample]:
    """Run prompts of 1 to `longest` tokens one after the other; the pool is filled before the first sample, so that it does not count."""
    generator = random.Random(seed)
    params = SamplingParams(max_tokens=2, ignore_eos=True)
    with Runtime(config=config) as runtime:
        info = runtime.text_service.info
        longest = min(longest or 1 << 20, (info.max_model_len or 1024) - params.max_tokens)

        def prompt(num_tokens: int) -> list[int]:
            return [generator.randrange(3, info.vocab_size) for _ in range(num_tokens)]

        stats = runtime.stats()
        while runtime.stats()["num_pages_free"] > stats["num_pages"] // 10:
            runtime.generate(token_ids=prompt(longest), params=params).result()
        for number in range(num_prompts + 1):
            if number * num_samples % num_prompts < num_samples:
                yield sample(number)
            if number < num_prompts:
                runtime.generate(token_ids=prompt(generator.randint(1, longest)), params=params).result()


def main() -> None:
    parser = argparse.ArgumentParser(description="Growth of memory over prompts of varied length.")
    parser.add_argument("--prompts", type=int, default=1000, help="default: 1000")
    parser.add_argument("--longest", type=int, default=None, help="tokens; default: the maximum of the model")
    parser.add_argument("--model", default=RuntimeConfig().model, help="default: the embedded model")
    parser.add_argument("--pages", type=int, default=256, help="pages of the pool; default: 256")
    options = parser.parse_args()
    config = RuntimeConfig(model=options.model, num_pages=options.pages, num_threads=1)
    print(HEADER, flush=True)
    for each in measure(config, options.prompts, longest=options.longest):
        print(each, flush=True)


if __name__ == "__main__":
    main()
