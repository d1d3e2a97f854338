"""Rules about whether the run learns, and what interrupts it."""

from __future__ import annotations

import math
import statistics

from headrace.diagnosis.evidence import Evidence, Stall
from headrace.diagnosis.report import Fix, Site
from headrace.diagnosis.rules_base import Rule, cost, first_site, matters, milliseconds, number, percent, plural

LEAST_STEPS = 5  # before a gradient that never came is missed
STUCK_STEPS = 20
STUCK = 0.001  # of its level: all that the loss moved
FLAT_STEPS = 100
FLAT = 0.005  # of its level: how little it fell
NOISE = 3.0  # standard errors
EVALUATION = 0.10  # of all time
LESS_OFTEN = 0.75  # of its time, saved by doing it a quarter as often
CHECKPOINT = 0.07  # of all time
STALL_STEPS = 10  # over which stalls are spread; the only checkpoint of a short run is no fault
NAMED = 3  # parameters that are named


def loss_not_falling(evidence: Evidence) -> Fix | None:
    """For certain: it is no number, it does not move, or nothing that is trained gets a gradient."""
    moved = _how_it_stands(evidence)
    if moved is None:
        return None
    return Fix(
        rule="loss_not_falling",
        title="The loss does not fall",
        evidence=moved,
        advice=_way_to_the_weights(evidence),
        site=evidence.loss_site,
    )


def _how_it_stands(evidence: Evidence) -> str | None:
    losses = evidence.losses
    if len(losses) >= LEAST_STEPS and not any(map(math.isfinite, losses[-LEAST_STEPS:])):
        return f"the last {LEAST_STEPS} losses are no numbers"
    if _without_gradient(evidence) and len(losses) >= STUCK_STEPS and not all(_drop(losses)):
        return f"{_from_to(losses)}, and no gradient reaches {_some(evidence.without_gradient)}"
    if len(losses) >= STUCK_STEPS and _spread(losses) <= STUCK:
        return f"{_from_to(losses)}: it moved by {_spread(losses):.2%}"
    return None


def _way_to_the_weights(evidence: Evidence) -> str:
    if not any(map(math.isfinite, evidence.losses[-LEAST_STEPS:])):
        return "lower the learning rate and clip the gradients\ntorch.nn.utils.clip_grad_norm_(parameters, 1.0)"
    return (
        "let the gradient reach the weights\n"
        "look for .detach(), .item() or torch.no_grad() between the model and the loss, an optimizer over the "
        "parameters of another model, zero_grad() between backward() and step(), a learning rate of 0"
    )


def no_gradient(evidence: Evidence) -> Fix | None:
    if not _without_gradient(evidence) or loss_not_falling(evidence):
        return None
    return Fix(
        rule="no_gradient",
        title="Parameters of the optimizer never get a gradient",
        evidence=f"no gradient in {plural(evidence.steps, 'step')}: {_some(evidence.without_gradient)}",
        advice="use these parameters in the loss, or leave them out of the optimizer\n"
        "look for .detach() or torch.no_grad() on the way; if they are frozen on purpose, requires_grad_(False)",
        site=evidence.loss_site,
    )


def _without_gradient(evidence: Evidence) -> bool:
    return bool(evidence.without_gradient) and evidence.steps >= LEAST_STEPS


def loss_flat(evidence: Evidence) -> Fix | None:
    """Not for certain: a run that was gone on with, or has learned what there is, looks the same."""
    losses = evidence.losses
    if len(losses) < FLAT_STEPS or any(_drop(losses)) or loss_not_falling(evidence):
        return None
    return Fix(
        rule="loss_flat",
        title="The loss hardly falls",
        evidence=_from_to(losses),
        advice="check the learning rate and its warm-up\n"
        "one batch over and over has to bring the loss to 0; a run that has converged looks the same",
        site=evidence.loss_site,
    )


def _drop(losses: list[float]) -> tuple[bool, bool]:
    """The last quarter against the first: whether it is lower by more than a trifle, and by more than their noise."""
    first, last = _quarters(losses)
    drop = statistics.fmean(first) - statistics.fmean(last)
    error = math.sqrt(sum(statistics.variance(part) / len(part) for part in (first, last)))
    return drop > FLAT * abs(statistics.fmean(first)), drop > NOISE * error


def _quarters(losses: list[float]) -> tuple[list[float], list[float]]:
    finite = [loss for loss in losses if math.isfinite(loss)] or [0.0]
    finite = finite * 2 if len(finite) == 1 else finite
    quarter = max(2, len(finite) // 4)
    return finite[:quarter], finite[-quarter:]


def _spread(losses: list[float]) -> float:
    finite = [loss for loss in losses if math.isfinite(loss)]
    level = abs(statistics.fmean(finite)) if finite else 0.0
    return (max(finite) - min(finite)) / level if level else math.inf


def _from_to(losses: list[float]) -> str:
    first, last = (statistics.fmean(part) for part in _quarters(losses))
    return f"from {first:.4g} to {last:.4g} in {len(losses):,} steps"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{plural(len(names), 'parameter')} ({', '.join(names[:NAMED])}{more})"


def evaluation_stalls(evidence: Evidence) -> Fix | None:
    return _stall(
        evidence,
        "evaluation",
        EVALUATION,
        "Evaluation holds training up",
        "evaluate a quarter as often, or on a quarter of the batches\nheadrace train: --eval-every, --eval-batches",
    )


def checkpoint_stalls(evidence: Evidence) -> Fix | None:
    return _stall(
        evidence,
        "checkpoint",
        CHECKPOINT,
        "Writing checkpoints holds training up",
        "write checkpoints less often, or in the background\n"
        "torch.distributed.checkpoint.async_save; headrace train does so, see --checkpoint-every",
    )


def _stall(evidence: Evidence, phase: str, threshold: float, title: str, advice: str) -> Fix | None:
    taken = stalled(evidence, phase)
    if evidence.steps < STALL_STEPS or not matters(evidence, taken, threshold):
        return None
    return Fix(
        rule=f"{phase}_stalls",
        title=title,
        evidence=_stalls(evidence, phase, taken),
        advice=advice,
        phase=phase,
        site=_stall_site(evidence, phase),
        saves_ms=LESS_OFTEN * taken,
    )


def stalled(evidence: Evidence, phase: str) -> float:
    """Milliseconds for every step, whether the phases count the steps that stalled or leave them out."""
    lost = sum(stall.ms for stall in evidence.stalls if stall.phase == phase)
    return max(milliseconds(evidence, phase), lost / max(1, evidence.steps))


def _of_phase(evidence: Evidence, phase: str) -> list[Stall]:
    return sorted((stall for stall in evidence.stalls if stall.phase == phase), key=lambda stall: -stall.ms)


def _stalls(evidence: Evidence, phase: str, taken: float) -> str:
    stalls = _of_phase(evidence, phase)
    longest = f", the longest {number(stalls[0].ms)} ms after step {stalls[0].step:,}" if stalls else ""
    often = f"{plural(len(stalls), 'stall')}{longest}; " if stalls else ""
    return f"{often}{cost(evidence, taken)}"


def _stall_site(evidence: Evidence, phase: str) -> Site | None:
    sites = [stall.site for stall in _of_phase(evidence, phase) if stall.site]
    return sites[0] if sites else first_site(evidence, phase)


RULES = (
    Rule(
        "loss_not_falling",
        "no gradient reaches the weights, or the numbers have blown up",
        "losses, parameters without a gradient",
        f"{STUCK_STEPS} losses within {STUCK:.1%}, or not falling without gradients, or {LEAST_STEPS} no numbers",
        "find what cuts the way from the loss to the weights",
        loss_not_falling,
        first=True,
    ),
    Rule(
        "no_gradient",
        "parameters of the optimizer never get a gradient",
        "parameters whose .grad is None at every step",
        f"1 parameter over {LEAST_STEPS} steps",
        "use them in the loss or leave them out of the optimizer",
        no_gradient,
        first=True,
    ),
    Rule(
        "evaluation_stalls",
        "evaluation holds training up",
        "time in evaluation, spread over the steps",
        f"{percent(EVALUATION)} of all time, over {STALL_STEPS} steps or more",
        "evaluate less often or on less",
        evaluation_stalls,
    ),
    Rule(
        "checkpoint_stalls",
        "writing checkpoints holds training up",
        "time in saving, spread over the steps",
        f"{percent(CHECKPOINT)} of all time, over {STALL_STEPS} steps or more",
        "less often, or in the background",
        checkpoint_stalls,
    ),
    Rule(
        "loss_flat",
        "the run may not learn",
        "losses",
        f"{FLAT_STEPS} losses that fall by less than {FLAT:.1%} and less than their noise",
        "check the learning rate",
        loss_flat,
    ),
)
