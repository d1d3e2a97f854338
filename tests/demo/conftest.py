"""Shares the real demo of conftest_demo.py with the tests of the demo."""

from __future__ import annotations

from conftest_demo import told  # noqa: F401 - fixtures
