"""Settings of Ray that it reads when it is imported, by whatever test file that is."""

from __future__ import annotations

from tests.support.servers.ray_cluster import set_environment

set_environment()
