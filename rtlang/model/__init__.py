"""The model: checkpoints, tokenizers, decoders and the step runner.

OpenMP reads its wait policy when torch loads it, so the policy is set here, before any module of the package imports torch. Threads
that spin between operators take cores from the rest of the process, which also tokenizes, fills masks and serves; with one other busy
process on the machine, they made decoding of the embedded model 4 to 100 times slower.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
