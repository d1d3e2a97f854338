"""How many steps fit into a time: a few are made and timed first, because a schedule has to know its end."""

from __future__ import annotations

import statistics
import time

from headrace.loading import Loader
from headrace.loading.device import DeviceFeeder
from headrace.models import build_model
from headrace.storage import TokenStore
from headrace.training import Recipe, pick_device
from headrace.training.optimizer import build_optimizer
from headrace.training.precision import build_precision

WARM, TIMED = 2, 5
LEAST_STEPS = 12
FOR_STEPS = 0.9  # of the time; the rest goes to evaluation, samples and the checkpoint


def seconds_per_step(recipe: Recipe) -> float:
    """The median of a few steps of this recipe, on weights that are thrown away."""
    assert recipe.seq_len is not None
    device = pick_device("auto")
    assert isinstance(recipe.data, list)
    vocabulary = TokenStore(recipe.data[0]).vocab_size
    model = build_model(recipe.model, recipe.size, vocab_size=vocabulary, seed=recipe.seed).to(device)
    optimizer = build_optimizer(model, name="adamw", lr=recipe.train["lr"], device=device)
    precision = build_precision(recipe.train["precision"], device)
    parameters = list(model.parameters())
    loader = Loader(recipe.data, seq_len=recipe.seq_len, batch_size=recipe.batch_size)
    batches, times = iter(DeviceFeeder(loader, device)), list[float]()
    for _ in range(WARM + TIMED):
        began = time.perf_counter()
        batch = next(batches)
        with precision.autocast():
            loss = model(batch.input_ids, batch.targets)
        precision.backward(loss)
        float(precision.clip_and_step(optimizer, parameters, 1.0))  # a GPU has to be done before the clock is read
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM:])


def steps_within(seconds: float, per_step: float) -> int:
    return max(LEAST_STEPS, int(FOR_STEPS * seconds / per_step))
