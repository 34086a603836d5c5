"""Settings of Ray that it reads when it is imported, by whatever test file that is."""

from __future__ import annotations

import os

from tests.support.ray_cluster import ENVIRONMENT

os.environ.update(ENVIRONMENT)
