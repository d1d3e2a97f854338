"""What every test gets: no network, no colour, and the same examples every time."""

from __future__ import annotations

import os

from hypothesis import settings

# Before anything imports huggingface_hub, which reads it once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["NO_COLOR"] = "1"
os.environ["COLUMNS"] = "120"

# derandomize: a red run is red again. No deadline: a busy machine is not a bug.
settings.register_profile("headrace", derandomize=True, deadline=None)
settings.load_profile("headrace")
