"""The table of rules, and what it says of some evidence: fixes with the best first, and a verdict.

Rules stand in the order of causes: of several that would save the same milliseconds, the first one gets them, and a
later one only what is left.
"""

from __future__ import annotations

from headrace.diagnosis import rules_device, rules_input, rules_training
from headrace.diagnosis.evidence import Evidence
from headrace.diagnosis.report import COMPUTE, PHASES, Fix, speedup
from headrace.diagnosis.rules_base import Rule, matters, milliseconds, percent
from headrace.diagnosis.rules_settings import with_setting
from headrace.diagnosis.rules_training import stalled

TABLE: tuple[Rule, ...] = (*rules_input.RULES, *rules_device.RULES, *rules_training.RULES)

ALL_BUT = 0.99  # no change makes a step free
MENTIONED = 0.20  # of a step, beside the largest part
LAUNCHED = 0.50  # use of a GPU below which its host is what is slow

# Phases whose milliseconds can be saved only once, whichever of them a rule names.
POOLS = {"tokenization": "input", "data_wait": "input", **dict.fromkeys(COMPUTE, "compute")}

BOUND = {
    "input": ("Input-bound", ("tokenization", "data_wait", "host_to_device")),
    "sync": ("Sync-bound", ("host_sync",)),
    "compute": ("Compute-bound", COMPUTE),
    "cpu": ("CPU-bound", ("python", "logging")),
    "stalls": ("Held up", ("evaluation", "checkpoint")),
}
WORDS = {
    "input": "getting the data to the model",
    "sync": "waiting for numbers from the device",
    "compute": "forward, backward and the optimizer",
    "cpu": "Python and logging",
    "stalls": "evaluation and checkpoints",
}


def judge(evidence: Evidence) -> list[Fix]:
    """Faults that make the run useless first, then by what they would save."""
    left = _pools(evidence)
    found: list[tuple[Rule, Fix]] = []
    for rule in TABLE:
        fix = rule.look(evidence)
        if fix is None or (rule.rest and any(other.phase == fix.phase for _, other in found)):
            continue
        if _claim(evidence, fix, left):
            fix.advice = with_setting(evidence, fix)
            found.append((rule, fix))
    return [fix for _, fix in sorted(found, key=lambda entry: (not entry[0].first, -entry[1].saves_ms))]


def _pools(evidence: Evidence) -> dict[str, float]:
    pools: dict[str, float] = {}
    for name in PHASES:
        pool = POOLS.get(name, name)
        pools[pool] = pools.get(pool, 0.0) + stalled(evidence, name)
    return pools


def _claim(evidence: Evidence, fix: Fix, left: dict[str, float]) -> bool:
    """Take the milliseconds that nobody has claimed yet; a fix that is left with too few of them goes."""
    if not fix.saves_ms or fix.phase is None:
        return True
    pool = POOLS.get(fix.phase, fix.phase)
    fix.saves_ms = min(fix.saves_ms, left[pool], _idle(evidence, pool), ALL_BUT * evidence.step_ms)
    if not matters(evidence, fix.saves_ms):
        return False
    fix.speedup = speedup(evidence.step_ms, fix.saves_ms)
    left[pool] -= fix.saves_ms
    return True


def _idle(evidence: Evidence, pool: str) -> float:
    """Time in which a GPU computes is not saved by what the host does better: it would only wait elsewhere."""
    if evidence.gpu is None or pool == "compute":
        return evidence.step_ms
    return evidence.step_ms * (1 - evidence.gpu)


def verdict(evidence: Evidence) -> str:
    """What the step is bound by, in one sentence."""
    shares = {group: _share(evidence, names) for group, (_, names) in BOUND.items()}
    if not evidence.steps or not sum(shares.values()):
        return "Nothing was measured."
    most = max(shares, key=lambda group: shares[group])
    if most == "compute" and evidence.gpu is not None and evidence.gpu < LAUNCHED:
        return (
            f"CPU-bound: the GPU works {percent(evidence.gpu)} of the time and waits for the host to launch its work."
        )
    others = [
        f"{percent(share)} {WORDS[group]}" for group, share in shares.items() if group != most and share >= MENTIONED
    ]
    beside = f", {' and '.join(others)}" if others else ""
    return f"{BOUND[most][0]}: {percent(shares[most])} of a step is {WORDS[most]}{beside}."


def _share(evidence: Evidence, names: tuple[str, ...]) -> float:
    return milliseconds(evidence, *names) / evidence.step_ms if evidence.step_ms else 0.0
