"""Shares conftest_pipeline.py with the tests of the command line."""

from __future__ import annotations

from conftest_pipeline import corpus, headrace  # noqa: F401 - fixtures
