"""The page: one file for all views, with the answer to its first question already in it."""

from __future__ import annotations

import re
from typing import Any

from headrace.telemetry import encode_json

STATE = re.compile(rb'(<script type="application/json" id="state">).*?(</script>)', re.DOTALL)
# JSON has these characters only inside its texts, where the escape means the same. So nothing can end the element, open
# a comment in it, or be a line end to an old parser.
ESCAPES = {character.encode(): f"\\u{ord(character):04x}".encode() for character in "<>&\u2028\u2029"}


def with_state(page: bytes, state: Any) -> bytes:
    """The page with this state in its place."""
    text = escaped(state)
    made, count = STATE.subn(lambda found: found[1] + text + found[2], page, count=1)
    assert count == 1, "index.html has no place for the state"
    return made


def escaped(state: Any) -> bytes:
    """JSON that may stand inside a script element."""
    text = encode_json(state)
    for character, escape in ESCAPES.items():
        text = text.replace(character, escape)
    return text
