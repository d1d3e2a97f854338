"""What `.headrace/events.jsonl` says of a preparation, read on from where it was read before."""

from __future__ import annotations

from pathlib import Path

import msgspec

from headrace.dashboard.follow import Follower, Replaced

MAX_POINTS = 400  # of the rate curve; merged in pairs beyond


class RunningLine(msgspec.Struct, array_like=True):
    index: int
    input_bytes: int = 0
    total_input_bytes: int = 0
    tokens: int = 0


class CountsLine(msgspec.Struct):
    documents: int = 0
    rejects: int = 0
    text_bytes: int = 0
    tokens: int = 0


class PrepareLine(msgspec.Struct):
    """Any event of the log, as far as a page needs it."""

    kind: str = ""
    t: float = 0.0
    tasks: int = 0
    tasks_done: int = 0
    resumed: int = 0
    input_bytes: int = 0
    total_input_bytes: int = 0
    counts: CountsLine = msgspec.field(default_factory=CountsLine)
    seconds: float = 0.0
    text_mb_per_s: float | None = None
    tokens_per_s: float | None = None
    eta_seconds: float | None = None
    stage_shares: dict[str, float] = {}
    done: str | None = None
    running: list[RunningLine] = []
    documents: int = 0
    tokens: int = 0
    val_documents: int = 0
    val_tokens: int = 0
    rejects: int = 0
    command: str | None = None
    error: str | None = None

    @property
    def totals(self) -> CountsLine:
        """Of the dataset that an event of kind prepare_done ended."""
        return CountsLine(
            documents=self.documents + self.val_documents, rejects=self.rejects, tokens=self.tokens + self.val_tokens
        )


class Rate:
    """Text in and seconds passed at each event of one preparation, all its runs in a row; bounded."""

    def __init__(self) -> None:
        self._points: list[tuple[float, int]] = [(0.0, 0)]
        self._before = 0.0  # seconds of the runs before
        self._clock = 0.0

    def begin(self) -> None:
        """Another run goes on: its clock begins at 0 again."""
        self._before, self._clock = self._points[-1][0], 0.0

    def add(self, seconds: float, text_bytes: int) -> None:
        if seconds < self._clock:
            self.begin()  # within a run the clock begins anew when work is done again with another engine
        self._clock, at = seconds, self._before + seconds
        if at > self._points[-1][0]:
            self._points.append((at, text_bytes))
        if len(self._points) > MAX_POINTS:
            self._points = [self._points[0], *self._points[2::2]]

    def as_dict(self) -> dict[str, list[float]]:
        """MB/s between two events; 0 where a run had to do work again that another had lost."""
        pairs = list(zip(self._points, self._points[1:], strict=False))
        return {
            "seconds": [round(end, 3) for _, (end, _) in pairs],
            "mb_per_s": [round(max(0, now - then) / 1e6 / (end - start), 3) for (start, then), (end, now) in pairs],
        }


class PrepareLog:
    """Follows one log. `progress` is the newest event that says how far the work is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._decode = msgspec.json.Decoder(PrepareLine).decode
        self._forget()

    def _forget(self) -> None:
        self._follower = Follower(self.path)
        self.start: PrepareLine | None = None
        self.progress: PrepareLine | None = None
        self.finished: PrepareLine | None = None
        self.failed: PrepareLine | None = None
        self.updated: float | None = None
        self.rate = Rate()

    def refresh(self) -> None:
        """Take in what is new; a log that was replaced is read from its beginning."""
        try:
            self._read_on()
        except Replaced:
            self._forget()
            self._read_on()

    def _read_on(self) -> None:
        while lines := self._follower.read():
            for line in lines.splitlines():
                try:
                    self._take(self._decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue  # cut by a kill, or by another version

    def _take(self, line: PrepareLine) -> None:
        self.updated = line.t or self.updated
        if line.kind == "prepare_start":
            self._begin(line)
        elif line.kind == "prepare_progress":
            self.progress = line
            self.rate.add(line.seconds, line.counts.text_bytes)
        elif line.kind == "prepare_done":
            self.finished = line
        elif line.kind == "prepare_failed":
            self.failed = line

    def _begin(self, line: PrepareLine) -> None:
        """A run that finds nothing done begins a dataset; one that finds work done goes on with it."""
        if line.resumed and self.start is not None:
            self.rate.begin()
            if self.progress is not None:
                self.progress.running = []  # what they had done is lost
        else:
            self.rate, self.progress = Rate(), None
        self.start, self.finished, self.failed = line, None, None
