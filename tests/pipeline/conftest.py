"""Shares conftest_pipeline.py and conftest_hub.py with the tests of the command line."""

from __future__ import annotations

from conftest_hub import hub_client, hub_server, stand_in  # noqa: F401 - fixtures
from conftest_pipeline import corpus, headrace  # noqa: F401 - fixtures
