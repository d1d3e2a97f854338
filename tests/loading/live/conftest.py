"""What the tests of live feeds share."""

from __future__ import annotations

from conftest_live import corpus, small_pieces  # noqa: F401 - fixtures
