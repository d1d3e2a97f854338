"""What every page must be, for the tests of all of them: closed tags, no script, nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

# Closes whatever it may stand in, has half a surrogate pair, a control character, and one that turns text around.
HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;\ud800\x07\u202e</style></title></svg></pre>"
VOID = {"meta", "br"}
ALLOWED = {"html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "article", "br"}
ALLOWED |= {"h1", "h2", "h3", "h4", "p", "b", "i", "span", "div", "code", "pre", "ul", "li", "dl", "dt", "dd"}
ALLOWED |= {"table", "tr", "th", "td", "figure", "figcaption", "svg", "path", "rect", "details", "summary"}


class Checker(HTMLParser):
    """Every tag is one that a page has, and is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.tips: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")], attrs
        self.tags.append(tag)
        self.tips += [value or "" for name, value in attrs if name == "data-tip"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def check(html: str) -> Checker:
    """Well-formed, without script, and in need of nothing else."""
    html.encode()
    assert not re.search(r"https?:|url\(|@import|<script|<link|<iframe|<img", html)
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker
