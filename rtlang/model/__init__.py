"""Computes: checkpoints, tokenizers, decoders and the step runner.

OpenMP reads how its threads wait when torch loads it, so that is said here, before any module of the package imports torch. Threads
that spin between operators take the cores from everything else of a process that also tokenises, masks and serves; beside one
other busy process they made decoding of the embedded model 4 to 100 times slower.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
