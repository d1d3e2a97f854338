"""A live run goes on from any of its batches, and only with the same text and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest_live import WINDOW, batches, no_threads_left, open_feed, take
from headrace.errors import UsageError
from headrace.loading.live import LiveText, filler


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_size", [4, 7])
def test_resuming_at_every_step(corpus: Path, shuffle: bool, batch_size: int) -> None:
    """Over the ends of blocks and of epochs."""
    live = LiveText(corpus, threads=1, window=WINDOW)
    options: dict[str, Any] = {"shuffle": shuffle, "batch_size": batch_size}
    running = open_feed(live, **options)
    states, expected = [running.state()], []
    while states[-1]["epoch"] < 2:
        expected += take(running, 1)
        states.append(json.loads(json.dumps(running.state(), sort_keys=True)))
    expected += take(running, 3)
    for step, state in enumerate(states):
        assert state["step"] == step
        resumed = open_feed(live, **options, state=state)
        assert resumed.state() == state
        first = resumed.next()
        assert first.step == step
        assert [first.tokens.tolist(), *take(resumed, 2)] == expected[step : step + 3]
        resumed.stop()
    assert len(states) > 15
    running.stop()


def test_resuming_does_not_tokenize_what_came_before(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filler, "MOST_GROUPS", 2)
    lines: list[str] = []
    live = LiveText(corpus, threads=1, group=1, verbose=True, report=lines.append)
    running = open_feed(live, shuffle=False)
    while running.state()["turn"] < len(live.units) - 2:
        running.next()
    running.stop()
    no_threads_left()
    before = len(lines)
    lines.clear()
    resumed = open_feed(live, shuffle=False, state=running.state())
    resumed.next()
    resumed.stop()
    no_threads_left()
    assert before > 40
    assert len(lines) < 12


def test_a_state_of_other_text_or_settings_is_refused(corpus: Path, tmp_path: Path) -> None:
    running = open_feed(LiveText(corpus, window=WINDOW))
    state = running.state()
    running.stop()

    def refusal(live: LiveText, **more: Any) -> str:
        with pytest.raises(UsageError, match="belongs to other text or settings") as caught:
            open_feed(live, **more, state=state)
        return str(caught.value)

    assert "seed: 5 then, 6 now" in refusal(LiveText(corpus, window=WINDOW), seed=6)
    assert "window: 160 then, 320 now" in refusal(LiveText(corpus, window=2 * WINDOW))
    assert "tokenizer: " in refusal(LiveText(corpus, tokenizer="bytes", window=WINDOW))
    assert "'text_field': 'text'" in refusal(LiveText(corpus, text_field="text", window=WINDOW))
    assert "files: 3 then, 1 now" in refusal(LiveText(corpus / "a.jsonl", window=WINDOW))
    moved = corpus.rename(tmp_path / "elsewhere")
    batches(LiveText(moved, window=WINDOW), 1, state=state)
    changed = (moved / "a.jsonl").read_bytes().replace(b"wheel", b"wharf", 1)
    (moved / "a.jsonl").write_bytes(changed)
    assert "content: " in refusal(LiveText(moved, window=WINDOW))
