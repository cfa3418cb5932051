"""What holds for every test: hypothesis judges by what is true, and not by how long an example took; and arrays and
tensors are computed by one thread, as all cores have a worker of pytest already, and each test is small."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")
