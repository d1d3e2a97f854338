"""The page of a demo: all that was promised is on it, it needs nothing else, and no text can leave its place."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import msgspec

from conftest_demo import Told
from headrace.demo.findings import Findings
from headrace.demo.page import headline, page

HOSTILE = "</pre></title><script>alert(1)</script><img src=x onerror='alert(2)'>\"'&\x1b[31m"


class Elements(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def with_hostile_text(found: Findings) -> Findings:
    """The same findings, with every text in them replaced but for names that are keys of the house."""

    def replaced(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: replaced(entry, key) for key, entry in value.items()}
        if isinstance(value, list):
            return [replaced(entry, name) for entry in value]
        kept = name in ("device", "model", "rule", "phase", "file") or (name == "name" and value in KEPT)
        return HOSTILE if isinstance(value, str) and not kept else value

    KEPT = {phase.name for way in (found.slow, *found.fast) for phase in way.report.phases}  # noqa: N806
    return msgspec.convert(replaced(msgspec.to_builtins(found)), Findings)


def test_everything_promised_is_there(told: Told) -> None:
    found = told.findings
    seen = Elements(page(found)).text
    assert headline(found) in seen
    for way in (found.slow, *found.fast):
        assert f"{way.tokens_per_second:,.0f} tokens/s" in seen
        assert f"Step {way.report.step_ms:,.0f} ms" in seen  # its tree
    for fix in found.slow.report.fixes:
        assert fix.title in seen
        assert fix.site is not None
        assert fix.site.place in seen
    for sample in found.samples:
        assert sample.prompt + sample.text.replace("\r", "\ufffd") in seen or sample.prompt in seen
    for command in found.next_commands:
        assert command in seen
    for stage in found.stages:
        assert stage["title"] in seen
    assert "By tokens" in seen
    assert "By seconds of training" in seen


def test_it_needs_nothing_from_elsewhere(told: Told) -> None:
    markup = page(told.findings)
    elements = Elements(markup)
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(elements.tags)
    assert not [name for name, _ in elements.attributes if name in ("src", "href") or name.startswith("on")]
    assert "://" not in markup.replace("http://www.w3.org", "")
    assert "default-src 'none'" in markup


def test_hostile_text_stays_text(told: Told) -> None:
    plain, hostile = Elements(page(told.findings)), Elements(page(with_hostile_text(told.findings)))
    assert sorted(set(hostile.tags)) == sorted(set(plain.tags))
    assert not [name for name, _ in hostile.attributes if name.startswith("on") or name == "src"]
    assert "<script>alert(1)</script>" in hostile.text
    assert "\x1b" not in hostile.text


def test_a_run_without_gain_says_so(told: Told) -> None:
    slower = msgspec.structs.replace(told.findings, factor=0.8)
    assert headline(slower) == "No gain in this run: 0.80 times as fast"
    assert headline(msgspec.structs.replace(slower, factor=12.34)) == "12 times faster on the same machine"


def test_a_busy_machine_is_named(told: Told) -> None:
    calm = {**told.findings.machine, "load_at_start": 0.1, "cores": 2}
    assert "Other programs" not in page(msgspec.structs.replace(told.findings, machine=calm))
    busy = {**calm, "load_at_start": 3.5}
    assert "load 3.5 on 2 cores" in page(msgspec.structs.replace(told.findings, machine=busy))
