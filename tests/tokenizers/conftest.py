"""The stand-in hub, for tokenizers that come from there."""

from __future__ import annotations

from conftest_hub import hub_client, hub_server, stand_in  # noqa: F401 - fixtures
