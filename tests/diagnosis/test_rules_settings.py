"""Where a framework has the loop, the advice is a setting of it."""

from __future__ import annotations

import pytest

from headrace.diagnosis.evidence import Evidence, Loading
from headrace.diagnosis.report import Site, phases_from
from headrace.diagnosis.rules import judge


def waiting(framework: str, what: str) -> Evidence:
    site = Site(file="train.py", line=9, what=what, ms=60.0)
    return Evidence(
        step_ms=100.0,
        steps=50,
        phases=phases_from({"data_wait": 60.0, "forward": 40.0}),
        cores=4,
        framework=framework,
        loading=[Loading(site=site, workers=0, batch_size=8, pin_memory=False, cores=4)],
    )


def test_loader_that_the_trainer_builds() -> None:
    (fix,) = judge(waiting("transformers", "DataLoader (transformers/trainer.py:800)"))
    assert fix.rule == "too_few_workers"
    assert fix.advice.endswith("TrainingArguments(dataloader_num_workers=2, dataloader_persistent_workers=True)")


@pytest.mark.parametrize("framework", ["", "transformers", "lightning"])
def test_loader_that_the_user_builds_is_changed_there(framework: str) -> None:
    (fix,) = judge(waiting(framework, "DataLoader"))
    assert "DataLoader(..., num_workers=2" in fix.advice


@pytest.mark.parametrize(
    ("framework", "setting"),
    [("transformers", "eval_steps"), ("lightning", "val_check_interval"), ("", "--eval-every")],
)
def test_when_to_evaluate_is_up_to_the_framework(framework: str, setting: str) -> None:
    evidence = Evidence(
        step_ms=100.0,
        steps=50,
        phases=phases_from({"evaluation": 50.0, "forward": 50.0}),
        cores=4,
        framework=framework,
    )
    (fix,) = judge(evidence)
    assert setting in fix.advice
