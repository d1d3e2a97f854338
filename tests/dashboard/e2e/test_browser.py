"""Where there is no browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest_browser import find_chromium, no_browser


def test_one_is_named_by_the_environment_or_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("HEADRACE_CHROMIUM", raising=False)
    assert find_chromium() is None
    (tmp_path / "google-chrome").touch(mode=0o755)
    assert find_chromium() == str(tmp_path / "google-chrome")
    monkeypatch.setenv("HEADRACE_CHROMIUM", "/opt/chromium")
    assert find_chromium() == "/opt/chromium"


def test_without_one_tests_are_skipped_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="There is no browser: none of chromium"):
        no_browser()
    monkeypatch.setenv("HEADRACE_BROWSER", "required")
    with pytest.raises(pytest.fail.Exception, match=r"There is no browser: .* HEADRACE_BROWSER=required asks for one"):
        no_browser()
