"""Every rule fires on what it is about, is silent just below its threshold, and nothing fires on a healthy run."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from headrace.diagnosis import rules_device, rules_input, rules_training
from headrace.diagnosis.evidence import Copies, Evidence, Loading, Optimizing, Stall, Tokenizing
from headrace.diagnosis.report import Fix, Site, phases_from
from headrace.diagnosis.rules import TABLE, judge, verdict

LEAST = 0.999  # of a threshold


def site(ms: float = 0.0, calls: float = 1.0, **more: Any) -> Site:
    return Site(**{"file": "/home/me/train.py", "line": 7, "code": "x = f(y)", "ms": ms, "calls": calls, **more})


def evidence(
    *, phases: dict[str, float] | None = None, sites: list[tuple[str, Site]] | None = None, **more: Any
) -> Evidence:
    """A step of 100 ms: what the phases do not name is forward and backward."""
    named = dict(phases or {})
    rest = 100.0 - sum(named.values())
    shares = {"forward": rest / 3, "backward": rest * 2 / 3} if "forward" not in named else {}
    told = {"step_ms": 100.0, "steps": 50, "phases": phases_from({**named, **shares}, sites or []), **more}
    return Evidence(**told)


def healthy() -> Evidence:
    """As a run is that has nothing to mend: a little of everything."""
    return evidence(
        phases={
            "tokenization": 0.5,
            "data_wait": 3.0,
            "host_to_device": 2.0,
            "optimizer": 6.0,
            "host_sync": 2.0,
            "evaluation": 6.0,
            "checkpoint": 2.0,
            "logging": 1.0,
            "python": 5.0,
        },
        sites=[("host_sync", site(2.0, what="Tensor.item"))],
        cores=8,
        cpu=0.6,
        gpu=0.95,
        threads=8,
        busy=0.3,
        tokenizing=[Tokenizing(library="tokenizers", site=site(0.5, 8), texts_per_call=1, ms_per_text=0.06)],
        copies=[Copies(site=site(2.0), blocking=True, pinned=False, bytes=1e6)],
        loading=[Loading(site=site(), workers=4, batch_size=8, cores=8)],
        optimizers=[Optimizing(name="AdamW", parameters=100, one_by_one=True)],
        stalls=[Stall(step=20, ms=300.0, phase="evaluation")],
        pad_share=0.05,
        files_per_step=0.1,
        bytes_per_file=1e9,
        losses=[8.0 * math.exp(-step / 50) + 2.0 for step in range(200)],
    )


def tokenizing(ms: float, texts: float = 1.0, *, waited: float = 0.0, **more: Any) -> Evidence:
    entry = Tokenizing(library="tokenizers", site=site(ms, 32), texts_per_call=texts, ms_per_text=0.4, **more)
    phases = {"data_wait": waited} if waited else {"tokenization": ms}
    return evidence(phases=phases, tokenizing=[entry])


def files(count: float = 32, size: float = 2000, waited: float = 30.0) -> Evidence:
    return evidence(phases={"data_wait": waited}, files_per_step=count, bytes_per_file=size, file_site=site())


def workers(count: int, cores: int, waited: float) -> Evidence:
    return evidence(phases={"data_wait": waited}, loading=[Loading(site=site(), workers=count, cores=cores)])


def copies(ms: float, **more: Any) -> Evidence:
    return evidence(phases={"host_to_device": ms}, copies=[Copies(site=site(ms), bytes=1e6, **more)])


def threads(count: int, busy: float, computing: float = 100.0) -> Evidence:
    return evidence(phases={"forward": computing, "python": 100.0 - computing}, cores=2, threads=count, busy=busy)


def optimizer(ms: float, tensors: int = 100, one_by_one: bool = True) -> Evidence:
    entry = Optimizing(name="AdamW", site=site(), parameters=tensors, one_by_one=one_by_one, kernels=1200)
    return evidence(phases={"optimizer": ms}, optimizers=[entry])


def noisy(level: float, fall: float, steps: int) -> list[float]:
    noise = random.Random(3)
    return [level * (1 + noise.gauss(0, 0.01) - fall * step / steps) for step in range(steps)]


PER_SAMPLE, PER_BATCH = "tokenizing_per_sample", "tokenizing_in_loop"
CASES: dict[str, tuple[list[Evidence], list[Evidence]]] = {  # fires, does not
    PER_SAMPLE: (
        [tokenizing(5), tokenizing(40, waited=5, in_worker=True)],
        [tokenizing(5 * LEAST), tokenizing(5, texts=2), tokenizing(40, waited=5 * LEAST, in_worker=True)],
    ),
    PER_BATCH: ([tokenizing(5, texts=32)], [tokenizing(5 * LEAST, texts=32), tokenizing(5)]),
    "small_files": (
        [files(), files(count=4), files(waited=5)],
        [files(count=4 * LEAST), files(size=256 * 1024), files(waited=5 * LEAST)],
    ),
    "too_many_workers": ([workers(5, 2, 0.0), workers(17, 8, 20.0)], [workers(4, 2, 0.0), workers(16, 8, 20.0)]),
    "too_few_workers": (
        [workers(0, 2, 10.0), workers(1, 8, 40.0)],
        [workers(0, 2, 10 * LEAST), workers(2, 2, 40.0)],
    ),
    "waiting_for_data": ([evidence(phases={"data_wait": 10.0})], [evidence(phases={"data_wait": 10 * LEAST})]),
    "padding": (
        [evidence(pad_share=0.2), evidence(phases={"python": 75}, pad_share=0.2)],
        [evidence(pad_share=0.2 * LEAST), evidence(phases={"python": 76}, pad_share=0.2)],
    ),
    "sync_in_loop": (
        [evidence(phases={"host_sync": 5}), evidence(phases={"host_sync": 50}, gpu=0.95)],
        [evidence(phases={"host_sync": 5 * LEAST}), evidence(phases={"host_sync": 50}, gpu=0.951)],
    ),
    "blocking_copies": ([copies(5, blocking=True)], [copies(5 * LEAST, blocking=True), copies(5, blocking=False)]),
    "unpinned_memory": (
        [copies(5, blocking=False, pinned=False)],
        [copies(5 * LEAST, blocking=False, pinned=False), copies(5, blocking=False, pinned=True)],
    ),
    "oversubscribed_threads": (
        [threads(2, 1.0), threads(3, 0.0), threads(2, 1.0, computing=30)],
        [threads(2, LEAST), threads(1, 8.0), threads(2, 1.0, computing=29)],
    ),
    "eager_optimizer": (
        [optimizer(10)],
        [optimizer(10 * LEAST), optimizer(10, one_by_one=False), optimizer(10, tensors=19)],
    ),
    "logging_in_loop": ([evidence(phases={"logging": 5})], [evidence(phases={"logging": 5 * LEAST})]),
    "loss_not_falling": (
        [
            evidence(losses=[1.0] * 20),
            evidence(losses=[1.0, 1.001] * 10),
            evidence(losses=noisy(6.9, 0.0, 20), without_gradient=["head.weight"]),
            evidence(losses=[3.0] + [math.nan] * 5),
        ],
        [
            evidence(losses=[1.0] * 19),
            evidence(losses=[1.0, 1.0011] * 10),
            evidence(losses=noisy(6.9, 0.2, 20), without_gradient=["head.weight"]),
            evidence(losses=[math.nan] * 4 + [3.0]),
        ],
    ),
    "no_gradient": (
        [evidence(without_gradient=["head.weight"], steps=5)],
        [evidence(without_gradient=["head.weight"], steps=4), evidence(without_gradient=[])],
    ),
    "evaluation_stalls": (
        [evidence(phases={"evaluation": 10}), evidence(stalls=[Stall(step=9, ms=500, phase="evaluation")])],
        [
            evidence(phases={"evaluation": 10 * LEAST}),
            evidence(stalls=[Stall(step=9, ms=499, phase="evaluation")]),
            evidence(phases={"evaluation": 50}, steps=9),
        ],
    ),
    "checkpoint_stalls": (
        [evidence(phases={"checkpoint": 7}), evidence(stalls=[Stall(step=9, ms=350, phase="checkpoint")])],
        [
            evidence(phases={"checkpoint": 7 * LEAST}),
            evidence(stalls=[Stall(step=9, ms=349, phase="checkpoint")]),
            evidence(phases={"checkpoint": 50}, steps=9),
        ],
    ),
    "loss_flat": (
        [evidence(losses=noisy(6.9, 0.0, 100))],
        [evidence(losses=noisy(6.9, 0.0, 99)), evidence(losses=noisy(6.9, 0.02, 100))],
    ),
}


def found(evidence: Evidence) -> list[str]:
    return [fix.rule for fix in judge(evidence)]


def test_every_rule_has_its_cases() -> None:
    assert [rule.name for rule in TABLE] == list(CASES)


@pytest.mark.parametrize(("rule", "case"), [(rule, case) for rule, (fires, _) in CASES.items() for case in fires])
def test_rule_fires(rule: str, case: Evidence) -> None:
    assert rule in found(case)


@pytest.mark.parametrize(("rule", "case"), [(rule, case) for rule, (_, silent) in CASES.items() for case in silent])
def test_rule_is_silent_below_its_threshold(rule: str, case: Evidence) -> None:
    assert rule not in found(case)


@pytest.mark.parametrize("rule", CASES)
def test_a_fix_says_what_why_and_what_instead(rule: str) -> None:
    fix = next(fix for fix in judge(CASES[rule][0][0]) if fix.rule == rule)
    assert fix.title
    assert any(character.isdigit() for character in fix.evidence)
    short, *details = fix.advice.splitlines()
    assert len(short) <= 72
    assert details
    assert 1.0 <= fix.speedup <= 100.0


def test_nothing_fires_on_a_healthy_run() -> None:
    assert judge(healthy()) == []


def test_nothing_fires_where_nothing_was_measured() -> None:
    bare = Evidence(step_ms=0.0, steps=0, phases=[])
    assert judge(bare) == []
    assert verdict(bare) == "Nothing was measured."


def test_a_step_of_a_millisecond_is_left_alone() -> None:
    shares = {"data_wait": 0.19, "host_sync": 0.19, "logging": 0.19, "forward": 0.43}
    assert judge(Evidence(step_ms=1.0, steps=50, phases=phases_from(shares))) == []


# One millisecond is claimed once


def test_tokenizing_in_a_worker_explains_the_wait() -> None:
    case = tokenizing(160, waited=60, in_worker=True)
    case.loading = [Loading(site=site(), workers=1, cores=8)]
    (fix,) = judge(case)
    assert (fix.rule, fix.phase, fix.saves_ms) == (PER_SAMPLE, "data_wait", pytest.approx(60))
    assert fix.speedup == pytest.approx(2.5)


def test_what_workers_tokenize_at_once_is_waited_for_once() -> None:
    case = tokenizing(80, waited=60, in_worker=True)
    case.loading, case.cores = [Loading(site=site(), workers=4, cores=4)], 4
    assert judge(case)[0].saves_ms == pytest.approx(20)


def test_small_files_explain_the_wait_before_workers_do() -> None:
    case = files(waited=40)
    case.loading = [Loading(site=site(), workers=0, cores=8)]
    assert found(case) == ["small_files"]


def test_a_wait_that_has_a_cause_is_not_named_again() -> None:
    assert found(workers(0, 8, 80.0)) == ["too_few_workers"]


def test_tokenizing_by_sample_and_by_batch_are_two_faults() -> None:
    case = tokenizing(20)
    case.tokenizing.append(Tokenizing(library="tiktoken", site=site(30, 1), texts_per_call=32, ms_per_text=0.9))
    case.phases = phases_from({"tokenization": 50.0, "forward": 50.0})
    assert [(fix.rule, fix.saves_ms) for fix in judge(case)] == [(PER_BATCH, 30), (PER_SAMPLE, 20)]


def test_fixes_together_never_save_more_than_their_phases_have() -> None:
    everything = Evidence(
        step_ms=100.0,
        steps=50,
        phases=phases_from(
            dict.fromkeys(("tokenization", "data_wait", "host_to_device", "forward", "optimizer"), 20.0)
        ),
        cores=2,
        threads=16,
        tokenizing=[*CASES[PER_SAMPLE][0][0].tokenizing, *CASES[PER_BATCH][0][0].tokenizing],
        copies=[Copies(site=site(20), blocking=True), Copies(site=site(20), blocking=False, pinned=False)],
        loading=[Loading(site=site(), workers=0, cores=2)],
        optimizers=optimizer(20).optimizers,
        pad_share=0.9,
    )
    fixes = judge(everything)
    for least, most, phases in (
        (2, 40, {"tokenization", "data_wait"}),
        (1, 20, {"host_to_device"}),
        (2, 40, {"forward", "optimizer"}),
    ):
        saved = [fix.saves_ms for fix in fixes if fix.phase in phases]
        assert len(saved) >= least
        assert sum(saved) <= most + 1e-9


def test_the_gpu_bounds_what_the_host_can_save() -> None:
    fix = judge(evidence(phases={"host_sync": 60}, gpu=0.7))[0]
    assert fix.saves_ms == pytest.approx(30)


def test_best_first_but_a_run_that_learns_nothing_before_all() -> None:
    case = evidence(phases={"host_sync": 20, "logging": 40}, losses=[1.0] * 30)
    assert found(case) == ["loss_not_falling", "logging_in_loop", "sync_in_loop"]


def test_no_gradient_is_the_reason_of_a_loss_that_stays() -> None:
    fixes = judge(evidence(losses=noisy(6.9, 0.0, 200), without_gradient=["a", "b", "c", "d"]))
    assert [fix.rule for fix in fixes] == ["loss_not_falling"]
    assert "4 parameters (a, b, c and 1 more)" in fixes[0].evidence


@pytest.mark.parametrize("finite", [0, 1, 2, 3])
def test_losses_that_are_mostly_no_numbers_are_judged_too(finite: int) -> None:
    losses = [math.nan] * 120 + [3.0] * finite
    assert found(evidence(losses=losses, without_gradient=["a"])) == ["loss_not_falling"]


# Advice


def test_all_lines_that_sync_are_named() -> None:
    lines = [site(30, 3000, line=88), site(15, 1, line=91), site(0.5, 1, line=99)]
    fix = judge(evidence(phases={"host_sync": 45.5}, sites=[("host_sync", line) for line in lines]))[0]
    assert fix.site is not None
    assert fix.site.line == 88
    assert "3,000 times a step" in fix.evidence
    assert "train.py:91" in fix.evidence
    assert "train.py:99" not in fix.evidence
    assert fix.saves_ms == pytest.approx(45)


@pytest.mark.parametrize(
    ("what", "code", "says"),
    [
        ("Tensor.item", "total += loss.item()", "read the loss once per log interval"),
        ("Tensor.tolist", "ids = best.tolist()", "read the value once per log interval"),
        ("print", "print(loss)", "print once per log interval"),
        ("Tensor.__bool__", "if loss > 3:", "torch.where"),
        ("torch.nonzero", "mask.nonzero()", "torch.where"),
    ],
)
def test_advice_fits_what_was_called(what: str, code: str, says: str) -> None:
    line = site(50, 1, what=what, code=code)
    fix = judge(evidence(phases={"host_sync": 50}, sites=[("host_sync", line)]))[0]
    assert says in fix.advice


def test_as_many_workers_are_advised_as_hide_the_loading() -> None:
    """75 ms of loading beside 25 ms of computing: three workers, and the step is 25 ms."""
    fix = judge(workers(0, 8, 75.0))[0]
    assert "num_workers=3" in fix.advice
    assert fix.saves_ms == pytest.approx(75)
    few = judge(workers(0, 2, 75.0))[0]
    assert "num_workers=2" in few.advice
    assert few.saves_ms == pytest.approx(62.5)


# Verdict


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (evidence(phases={"data_wait": 40, "tokenization": 30}), "Input-bound: 70%"),
        (evidence(phases={"host_sync": 60}), "Sync-bound: 60%"),
        (evidence(), "Compute-bound: 100%"),
        (evidence(phases={"python": 60}), "CPU-bound: 60%"),
        (evidence(phases={"evaluation": 40, "checkpoint": 20}), "Held up: 60%"),
        (evidence(gpu=0.3), "CPU-bound: the GPU works 30%"),
        (evidence(gpu=0.9), "Compute-bound"),
        (evidence(phases={"data_wait": 20}), "20% getting the data to the model"),
    ],
)
def test_verdict(case: Evidence, says: str) -> None:
    assert says in verdict(case)


# The guide


def test_the_guide_has_the_table() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "diagnose.md").read_text(encoding="utf-8")
    rows = [f"| `{rule.name}` | {rule.cause} | {rule.evidence} | {rule.threshold} | {rule.advice} |" for rule in TABLE]
    assert [row for row in rows if row not in guide] == []


@pytest.mark.parametrize("module", [rules_input, rules_device, rules_training])
def test_rules_are_pure(module: Any) -> None:
    for rule in module.RULES:
        case = CASES[rule.name][0][0]
        first, second = rule.look(case), rule.look(case)
        assert isinstance(first, Fix)
        assert first == second
