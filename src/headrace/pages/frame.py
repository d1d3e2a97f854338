"""A whole page in one string: nothing from elsewhere, no script, and a policy that forbids both."""

from __future__ import annotations

from headrace.pages.style import BASE, CHARTS, TOKENS
from headrace.pages.text import text

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, body: str, extra_style: str = "") -> str:
    """`body` is markup, `title` is text."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{text(title)}</title><style>{TOKENS}{BASE}{CHARTS}{extra_style}</style></head>"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )
