"""The event log: whole lines, valid JSON, and readable after a kill."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from headrace.telemetry import EventLog, read_events


def test_an_event_is_one_line(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "deep" / "events.jsonl")
    log.write("step", loss=1.5)
    log.write_event({"t": 2.0, "kind": "message", "text": "two\nlines"})
    log.close()
    lines = (tmp_path / "deep" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["step", "message"]
    assert [event["kind"] for event in read_events(tmp_path / "deep" / "events.jsonl")] == ["step", "message"]


def test_what_is_no_number_is_null(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    log.write_event({"kind": "step", "loss": math.nan, "losses": [math.inf, -math.inf, 1.0]})
    log.close()
    line = (tmp_path / "events.jsonl").read_text()
    assert json.loads(line, parse_constant=lambda name: 1 / 0) == {
        "kind": "step",
        "loss": None,
        "losses": [None, None, 1.0],
    }


def test_values_that_json_does_not_have(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl")
    log.write("run", out=Path("runs/x"), loss=np.float32(0.5), text="half a pair \ud83d", kinds={"a": ("\udc00",)})
    log.write("run", what=object)
    log.close()
    first, second = read_events(tmp_path / "events.jsonl")
    assert (first["out"], first["loss"], first["text"]) == ("runs/x", 0.5, "half a pair ?")
    assert "object" in second["what"]


def test_a_cut_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"kind":"step","step":1}\n{"kind":"step","st')
    log = EventLog(path)
    log.write_event({"kind": "step", "step": 2})
    log.close()
    assert [event["step"] for event in read_events(path)] == [1, 2]
    assert path.read_bytes().count(b"\n") == 3


def test_a_cut_in_the_middle_of_a_character(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"kind":"step"}\n' + '{"text":"é'.encode()[:-1])
    assert list(read_events(path)) == [{"kind": "step"}]


def test_no_file_no_events(tmp_path: Path) -> None:
    assert list(read_events(tmp_path / "none.jsonl")) == []
