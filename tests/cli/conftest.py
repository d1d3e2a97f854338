"""Shares conftest_pipeline.py and conftest_cli.py with the tests of the command line."""

from __future__ import annotations

from conftest_cli import headrace_here  # noqa: F401 - fixtures
from conftest_pipeline import corpus, headrace  # noqa: F401 - fixtures
