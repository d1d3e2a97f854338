"""What a run leaves behind: events, history, samples, curves, TensorBoard files and a run at Weights & Biases."""

from __future__ import annotations

import errno
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conftest_events import a_run, end_event, eval_event, run_event, sample_event, step_event
from headrace.errors import Interrupted, MissingDependency, OutOfSpace
from headrace.training import recorder as recorder_module
from headrace.training.recorder import Recorder


def record(folder: Path, events: Iterable[dict[str, Any]], **options: Any) -> Recorder:
    options = {"tensorboard": False, "curves": False, **options}
    with Recorder(folder, **options) as recorder:
        for event in events:
            recorder(event)
    return recorder


def load(path: Path) -> Any:
    """Strict: NaN and Infinity are not JSON."""
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} in {path}"))


def test_every_event_is_a_line_at_once(tmp_path: Path) -> None:
    events = list(a_run(1000))
    recorder = Recorder(tmp_path, tensorboard=False)
    for count, event in enumerate(events, 1):
        recorder(event)
        assert len((tmp_path / "events.jsonl").read_bytes().splitlines()) == count
    recorder.close()
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_bytes().splitlines()]
    assert lines == events


def test_history_and_samples(tmp_path: Path) -> None:
    record(tmp_path, a_run(1000))
    told = load(tmp_path / "metrics_history.json")
    assert told["steps"] == list(range(10, 1001, 10))
    assert told["val_steps"] == list(range(100, 1001, 100))
    assert told["accuracy"] == [0.36] * 10
    assert told["shares"]["backward"] == pytest.approx([0.5] * 100)
    samples = load(tmp_path / "text_samples.json")
    assert samples[0] == {"step": 100, "prompt": "the cat\nsat on", "expected": " the mat", "predicted": " a mat"}
    assert len(samples) == 10


def test_numbers_that_are_none_stay_valid_json(tmp_path: Path) -> None:
    odd = step_event(10, loss=math.nan, losses=[math.nan, 2.0], grad_norm=math.inf)
    record(tmp_path, [run_event(), odd, eval_event(10, perplexity=math.inf)])
    told = load(tmp_path / "metrics_history.json")
    assert (told["train_loss"], told["grad_norm"], told["perplexity"]) == ([None], [None], [None])
    line = (tmp_path / "events.jsonl").read_text().splitlines()[1]
    assert json.loads(line)["losses"] == [None, 2.0]
    assert "NaN" not in line


def test_files_are_written_after_an_evaluation_and_not_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    real = recorder_module.write_atomically
    monkeypatch.setattr(recorder_module, "REST", 0)
    monkeypatch.setattr(
        recorder_module, "write_atomically", lambda path, data: (written.append(path.name), real(path, data))
    )
    recorder = Recorder(tmp_path, tensorboard=False, curves=False)
    for event in a_run(300):
        recorder(event)
    assert written == ["metrics_history.json", "text_samples.json"] * 3
    assert load(tmp_path / "text_samples.json")[-1]["step"] == 300  # with the samples of that evaluation
    recorder.close()


def test_files_do_not_cost_more_than_a_hundredth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a disk that takes 0.1 s for a file, a write of both is followed by 20 s without."""
    clock = [0.0]
    written: list[float] = []

    def slow(path: Path, data: bytes) -> None:
        clock[0] += 0.1
        written.append(clock[0])

    monkeypatch.setattr(recorder_module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(recorder_module, "write_atomically", slow)
    recorder = Recorder(tmp_path, tensorboard=False, curves=False)
    recorder(run_event())
    for step in range(10, 1010, 10):
        clock[0] += 1.0
        recorder(eval_event(step))
        recorder(step_event(step))
    spent = 0.1 * len(written)
    assert len(written) == 2 * 5
    assert spent <= 0.012 * clock[0]
    recorder(end_event(1000))
    assert len(written) == 2 * 6
    recorder.close()


def test_a_resumed_run_goes_on_in_its_history(tmp_path: Path) -> None:
    record(tmp_path, a_run(560))
    record(tmp_path, a_run(1000, first=500))
    told = load(tmp_path / "metrics_history.json")
    assert told["steps"] == list(range(10, 1001, 10))
    assert told["val_steps"] == list(range(100, 1001, 100))
    assert told["run"]["step"] == 500
    assert [sample["step"] for sample in load(tmp_path / "text_samples.json")] == list(range(100, 1001, 100))
    steps = [json.loads(line).get("step") for line in (tmp_path / "events.jsonl").read_bytes().splitlines()]
    assert steps.count(540) == 2  # the log keeps what happened


def test_a_killed_run_goes_on_in_its_history(tmp_path: Path) -> None:
    """Never closed, and its last line is cut."""
    recorder = Recorder(tmp_path, tensorboard=False)
    for event in a_run(560):
        recorder(event)
    recorder._log.close()
    whole = (tmp_path / "events.jsonl").read_bytes()
    (tmp_path / "events.jsonl").write_bytes(whole[:-20])
    record(tmp_path, a_run(1000, first=500))
    assert load(tmp_path / "metrics_history.json")["steps"] == list(range(10, 1001, 10))


@pytest.mark.parametrize("error", [Interrupted("stopped"), KeyboardInterrupt(), ValueError("broken")])
def test_files_are_whole_however_the_run_ends(tmp_path: Path, error: BaseException) -> None:
    def stopped() -> None:
        with Recorder(tmp_path, tensorboard=True) as recorder:
            for event in a_run(150):
                recorder(event)
            raise error

    with pytest.raises(type(error)):
        stopped()
    assert load(tmp_path / "metrics_history.json")["steps"] == list(range(10, 151, 10))
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert scalars(tmp_path)["loss/train"][-1][0] == 150


def test_closing_twice_or_before_the_run_began_is_harmless(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.close()
    recorder.close()
    assert not (tmp_path / "metrics_history.json").exists()


def test_a_missing_matplotlib_is_said_and_the_run_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    record(tmp_path, a_run(100), curves=True, report=said.append)
    assert len(said) == 1
    assert "headrace[train]" in said[0]
    assert load(tmp_path / "metrics_history.json")["steps"]
    assert not (tmp_path / "curves.png").exists()


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path, tensorboard=False)

    def full(event: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recorder._log, "write_event", full)
    with pytest.raises(OutOfSpace, match=r"events\.jsonl"):
        recorder(run_event())
    monkeypatch.undo()
    recorder.close()


# TensorBoard


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    return {tag: [(point.step, point.value) for point in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_tensorboard_has_the_numbers_in_groups(tmp_path: Path) -> None:
    record(tmp_path, a_run(1000), tensorboard=True)
    found = scalars(tmp_path)
    assert [step for step, _ in found["loss/train"]] == list(range(10, 1001, 10))
    assert [step for step, _ in found["loss/val"]] == list(range(100, 1001, 100))
    assert found["loss/val"][0][1] == pytest.approx(eval_event(100)["val_loss"])
    assert found["speed/tokens_per_second"][3][1] == pytest.approx(81920)
    assert found["anatomy/backward"][0][1] == pytest.approx(0.5)
    assert {tag.split("/")[0] for tag in found} == {"loss", "optimizer", "speed", "quality", "anatomy", "machine"}
    assert "machine/gpu" not in found


def test_tensorboard_has_the_text(tmp_path: Path) -> None:
    samples = [sample_event(100, "first"), sample_event(100, "second"), sample_event(200, "third")]
    record(tmp_path, [run_event(), *samples], tensorboard=True)
    found = EventAccumulator(str(tmp_path / "tensorboard"), size_guidance={"tensors": 0})
    found.Reload()

    def texts(tag: str) -> list[tuple[int, str]]:
        return [(e.step, e.tensor_proto.string_val[0].decode()) for e in found.Tensors(f"{tag}/text_summary")]

    assert [step for step, _ in texts("sample/1")] == [100, 200]
    assert "first" in texts("sample/1")[0][1]
    assert "second" in texts("sample/2")[0][1]
    assert "the cat" in texts("sample/1")[0][1]
    assert "transformer" in texts("run")[0][1]


def test_tensorboard_forgets_the_steps_that_are_done_again(tmp_path: Path) -> None:
    """Two files of one second would have the same name but for their number, and are read in the order of time."""
    record(tmp_path, a_run(560), tensorboard=True)
    (first,) = (tmp_path / "tensorboard").iterdir()
    first.rename(first.with_name("events.out.tfevents.0000000001.first"))
    record(tmp_path, a_run(1000, first=500), tensorboard=True)
    found = scalars(tmp_path)
    assert [step for step, _ in found["loss/train"]] == list(range(10, 1001, 10))
    assert [step for step, _ in found["loss/val"]] == list(range(100, 1001, 100))


def test_a_missing_tensorboard_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    record(tmp_path, a_run(1000), tensorboard=True, report=said.append)
    assert len(said) == 1
    assert "pip install 'headrace[train]'" in said[0]
    assert load(tmp_path / "metrics_history.json")["steps"]
    assert "headrace[train]" in (tmp_path / "events.jsonl").read_text().splitlines()[0]


def test_a_log_that_fails_is_left_out_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    recorder = Recorder(tmp_path, report=said.append, curves=False)
    recorder(run_event())
    monkeypatch.setattr(recorder._sinks["TensorBoard"]._writer.file_writer, "add_summary", lambda *_: 1 / 0)  # type: ignore[attr-defined]
    for step in (10, 20, 30):
        recorder(step_event(step))
    recorder.close()
    assert len(said) == 1
    assert "TensorBoard failed" in said[0]
    assert load(tmp_path / "metrics_history.json")["steps"] == [10, 20, 30]


# Weights & Biases


class FakeRun:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options, self.id = options, options["id"] or "abc123"
        self.logged: list[dict[str, Any]] = []
        self.metrics: list[tuple[str, dict[str, Any]]] = []
        self.exit_code: int | None = None

    def log(self, values: dict[str, Any]) -> None:
        self.logged.append(values)

    def define_metric(self, name: str, **options: Any) -> None:
        self.metrics.append((name, options))

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> list[FakeRun]:
    """A stand-in that keeps what it is told; the real one wants an account."""
    runs: list[FakeRun] = []
    module: Any = ModuleType("wandb")

    def init(**options: Any) -> FakeRun:
        runs.append(FakeRun(options))
        return runs[-1]

    module.init, module.Table = init, lambda columns, data: ("table", columns, data)
    monkeypatch.setitem(sys.modules, "wandb", module)
    return runs


def test_wandb_gets_numbers_samples_and_settings(tmp_path: Path, wandb: list[FakeRun]) -> None:
    record(tmp_path / "my-run", a_run(200, steps=200), wandb_project="headrace-tests")
    (run,) = wandb
    assert run.options["project"] == "headrace-tests"
    assert run.options["name"] == "my-run"
    assert run.options["config"]["config"]["lr"] == 3e-4
    assert ("*", {"step_metric": "step"}) in run.metrics
    losses = {values["step"]: values["loss/train"] for values in run.logged if "loss/train" in values}
    assert losses == {step: step_event(step)["loss"] for step in range(10, 201, 10)}
    assert [values["step"] for values in run.logged if "loss/val" in values] == [100, 200]
    tables = [values["samples"] for values in run.logged if "samples" in values]
    assert [table[2][0][0] for table in tables] == [100, 200]
    assert run.exit_code == 0


def test_wandb_goes_on_in_the_same_run(tmp_path: Path, wandb: list[FakeRun]) -> None:
    record(tmp_path, a_run(100), wandb_project="p", run_name="given")
    record(tmp_path, a_run(200, first=100), wandb_project="p", run_name="given")
    assert [run.options["id"] for run in wandb] == [None, "abc123"]
    assert {run.options["resume"] for run in wandb} == {"allow"}
    assert wandb[0].options["name"] == "given"


@pytest.mark.parametrize(("error", "code"), [(ValueError("broken"), 1), (Interrupted("stopped"), 0)])
def test_wandb_is_told_how_the_run_ended(tmp_path: Path, wandb: list[FakeRun], error: Exception, code: int) -> None:
    def ended() -> None:
        with Recorder(tmp_path, tensorboard=False, wandb_project="p") as recorder:
            recorder(run_event())
            raise error

    with pytest.raises(type(error)):
        ended()
    assert wandb[0].exit_code == code


def test_a_missing_wandb_is_an_error_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingDependency, match=r"'wandb'.*headrace\[wandb\]"):
        Recorder(tmp_path, wandb_project="p")
