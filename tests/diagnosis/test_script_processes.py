"""Who is who among the processes of a run, and which steps are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.diagnosis.script_processes import arrange, fold_of, outside_of_backward, read_family, timeline_of


def fold(steps: int) -> dict[str, Any]:
    return {"steps": steps, "seconds": 0.1 * steps, "cpu": 0.1, "tokens": 8, "phases": {"forward": 1.0}, "sites": []}


def process(pid: int, parent: int, *, first: int = 0, early: int = 0, late: int = 0, rank: str | None = None) -> Any:
    count = first + early + late
    folds = {"first": fold(first), "early": fold(early), "late": fold(late)}
    timeline = [{"forward": 0.001 * number} for number in range(1, count + 1)]
    steps = {"count": count, "timeline": timeline, **folds}
    return {"pid": pid, "parent": parent, "rank": rank, "steps": steps, "missing": []}


def test_the_main_process_steps_and_its_children_load() -> None:
    main, worker, stranger = process(10, 1, first=1, late=5), process(11, 10), process(12, 1)
    family = arrange([stranger, worker, main], [])
    assert (family.main, family.workers, family.others, family.ranks) == (main, [worker], [stranger], [])


def test_ranks_of_torchrun() -> None:
    one, zero = process(21, 20, first=1, rank="1"), process(22, 20, first=1, rank="0")
    family = arrange([process(20, 1), one, zero], [])
    assert (family.main, family.ranks) == (zero, [one])


def test_the_rank_that_the_others_wait_for_is_reported() -> None:
    zero, one = process(21, 20, first=1, late=4, rank="0"), process(22, 20, first=1, late=4, rank="1")
    zero["steps"]["late"]["phases"] = {"data_wait": 0.02, "backward": 0.38}  # 0.4 s in all, most of it waiting
    one["steps"]["late"]["phases"] = {"data_wait": 0.3, "backward": 0.1}
    family = arrange([zero, one], [])
    assert (family.main, family.ranks) == (one, [zero])
    assert outside_of_backward(one) - outside_of_backward(zero) == pytest.approx(0.07)


def test_without_a_step_there_is_no_main_process() -> None:
    assert arrange([process(10, 1)], ["why"]).main is None


def test_warmup_is_left_out_if_other_steps_are_there() -> None:
    assert fold_of(process(1, 0, first=1, early=2, late=7))["steps"] == 7
    assert fold_of(process(1, 0, first=1, early=2, late=1))["steps"] == 3
    assert fold_of(process(1, 0, first=1))["steps"] == 1


def test_timeline_has_the_reported_steps() -> None:
    assert timeline_of(process(1, 0, first=1, early=1, late=2), 2) == (3, [{"forward": 3.0}, {"forward": 4.0}])


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "process-1.json").write_text(json.dumps(process(1, 0, first=1)))
    (tmp_path / "process-2.json").write_text("{")
    (tmp_path / "failed-3.txt").write_text("ImportError: no")
    family = read_family(tmp_path)
    assert family.main is not None
    assert [text.split(":")[0] for text in family.missing] == ["the probe", "process-2.json cannot be read"]
