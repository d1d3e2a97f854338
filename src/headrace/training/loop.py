"""Trainer: a loop that never waits.

Inside a step nothing asks the device for a number. Losses and norms stay there and are read one logging interval late,
batches are copied ahead beside the computation, checkpoints are written in the background.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from headrace.errors import HeadraceError, Interrupted
from headrace.loading import Loader
from headrace.loading.device import DeviceBatch, DeviceFeeder
from headrace.models import LanguageModel, describe_model, forward_options
from headrace.tokenizers import Tokenizer
from headrace.training import evaluation
from headrace.training.backend import seed_everything, setup_backend
from headrace.training.checkpoint import Checkpoints
from headrace.training.compile import maybe_compile, run_guarded
from headrace.training.config import TrainConfig
from headrace.training.hardware import Usage, peak_flops, pick_device
from headrace.training.intervals import summarise
from headrace.training.late import Interval, LateReader
from headrace.training.optimizer import build_optimizer
from headrace.training.parallel import Group
from headrace.training.precision import build_precision
from headrace.training.recorder import Recorder
from headrace.training.saving import Progress, Saver, claimed
from headrace.training.schedule import learning_rate
from headrace.training.sources import source_counts
from headrace.training.spans import SpanClock, device_spans
from headrace.training.stopping import StopRequest
from headrace.training.strategies import build_strategy
from headrace.training.troubles import explained, nonfinite

Listener = Callable[[dict[str, Any]], None]


class TrainResult(NamedTuple):
    step: int
    tokens: int
    loss: float  # mean over the last logging interval
    val_loss: float | None
    out: Path


class Trainer:
    """Trains a model on a loader's batches. `run` again in the same folder goes on where it was."""

    def __init__(
        self,
        model: nn.Module,
        loader: Loader,
        config: TrainConfig,
        *,
        val_loader: Loader | None = None,
        tokenizer: Tokenizer | None = None,
        listeners: tuple[Listener, ...] = (),
        describe: dict[str, Any] | None = None,
        record: bool = True,
        group: Group | None = None,
    ) -> None:
        self.group = group or Group()
        self.config, self.loader, self.val_loader, self.tokenizer = config, loader, val_loader, tokenizer
        self.device = pick_device(self.group.device(config.device))
        setup_backend(self.device)
        seed_everything(config.seed)
        self._listeners, self._unsaid, self._record = list(listeners), list[str](), record
        self._description = describe if describe is not None else describe_model(model)
        self._taken = forward_options(model)
        self._strategy = build_strategy(model, self.group, self.device, config)
        self.model = self._strategy.model
        self.precision = build_precision(config.precision, self.device, report=self._say)
        self.optimizer = build_optimizer(
            self.model,
            name=config.optimizer,
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            device=self.device,
        )
        self.parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.step, self.tokens, self.seconds = 0, 0, 0.0
        self.loss, self.val_loss, self._evaluated = math.nan, None, -1
        self._batches_taken = loader.step
        self._clock, self._usage = SpanClock(self.device), Usage(self.device)
        self._late = LateReader(config.log_every, 2, self.device, average=self.group.mean)
        self._peak: float | None = None

    val_loss: float | None

    def _repr_html_(self) -> str | None:
        """Its run as a notebook shows it, once there is something to show."""
        from headrace.training.run_view import Run

        path = Path(self.config.out)
        return Run(path)._repr_html_() if (path / "events.jsonl").is_file() else None

    @property
    def tokens_per_step(self) -> int:
        return self.loader.batch_size * self.loader.seq_len * self.config.gradient_accumulation

    def listen(self, listener: Listener) -> None:
        """Have every event of the run, as a dict with its kind."""
        self._listeners.append(listener)

    def run(self) -> TrainResult:
        """Train to the last step, from the newest checkpoint on if there is one."""
        config = self.config
        folder = Path(config.out) / "checkpoints"
        checkpoints = Checkpoints(folder, keep_last=config.keep_last, keep_best=config.keep_best, report=self._say)
        saver = self._saver(checkpoints)
        # One Ctrl-C comes twice under torchrun: by the terminal and by torchrun itself.
        stopping = StopRequest(settle=2.0 if self.group.world_size > 1 else 0.0)
        with stopping as stop, self._recorded(), self.group.named(), claimed(checkpoints, self.group):
            self._resume(saver)
            try:
                with explained(config, self.loader):
                    self._train(saver, stop)
                self._emit("end", step=self.step, tokens=self.tokens, loss=self.loss, val_loss=self.val_loss)
            except KeyboardInterrupt:
                raise Interrupted(f"Stopped at once after step {self.step:,}; {self._go_on(folder)}") from None
        return TrainResult(self.step, self.tokens, self.loss, self.val_loss, Path(config.out))

    def _saver(self, checkpoints: Checkpoints) -> Saver:
        return Saver(
            checkpoints,
            self.group,
            self._strategy,
            optimizer=self.optimizer,
            precision=self.precision,
            loader=self.loader,
            seed=self.config.seed,
        )

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Everything the run says goes into its folder, unless the caller does without."""
        config = self.config
        if not self._record or not self.group.main:
            yield
            return
        with Recorder(
            config.out, tensorboard=config.tensorboard, wandb_project=config.wandb, report=self._say
        ) as recorder:
            self.listen(recorder)
            unsaid, self._unsaid = self._unsaid, []
            for text in unsaid:
                self._say(text)
            try:
                yield
            finally:
                self._listeners.remove(recorder)

    def _train(self, saver: Saver, stop: StopRequest) -> None:
        config = self.config
        peak = peak_flops(self.device, config.precision)
        self._peak = None if peak is None else peak * self.group.world_size
        maybe_compile(self.model, enabled=self._strategy.compile(config.compile), report=self._say)
        self.model.train()
        feeder = DeviceFeeder(self.loader, self.device)
        batches = iter(feeder)
        self._announce()
        self._clock.restart()
        if self.step < config.steps:  # tried again without compiling if that fails, on the very same batches
            self.group.stops(self.step, stop)
            first = [next(batches) for _ in range(config.gradient_accumulation)]
            run_guarded(self.model, lambda: self._one_step(iter(first)), report=self._say)
            self._after_step(saver, feeder)
        while self.step < config.steps and not self.group.stops(self.step, stop):
            self._one_step(batches)
            self._after_step(saver, feeder)
        stopped = self.step < config.steps  # a run that a signal met in its last step is done
        if stopped:
            self._say(f"Stopping after step {self.step:,}: saving.")
        self._close_interval()
        self._report(self._late.flush())
        if stopped:
            self._save(saver, feeder, background=False)
            raise Interrupted(
                f"Stopped by {self.group.stopped_by(stop)} after step {self.step:,}; everything is saved. "
                f"{self._go_on(saver.checkpoints.folder)}"
            )
        if self.step and not saver.finished(self.step):
            self._save(saver, feeder, background=False)

    def _one_step(self, batches: Iterator[DeviceBatch]) -> None:
        """One change of the weights. Nothing in here waits for the device."""
        config, clock = self.config, self._clock
        rate = self._learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        total: Tensor | None = None
        metrics: dict[str, Tensor] = {}
        for number in range(config.gradient_accumulation):
            batch = self._next_batch(batches)
            extras = self._extras(batch)
            with self._strategy.part(last=number == config.gradient_accumulation - 1):
                with self.precision.autocast():
                    loss = self._strategy.forward(batch.input_ids, batch.targets, **extras)
                loss = self._strategy.weighted(loss, extras.get("loss_mask"))
                metrics = self._metrics()
                clock.mark("forward")
                self.precision.backward(loss / config.gradient_accumulation)
                clock.mark("backward")
            total = loss.detach() if total is None else total + loss.detach()
        norm = self.precision.clip_and_step(self.optimizer, self.parameters, config.clip)
        self.optimizer.zero_grad(set_to_none=True)
        clock.mark("optimizer")
        assert total is not None
        self._late.add(total / config.gradient_accumulation, norm, **metrics)
        self.step += 1
        self.tokens += self.tokens_per_step

    def _next_batch(self, batches: Iterator[DeviceBatch]) -> DeviceBatch:
        """The wait for the loader is one span, the copy to the device another."""
        waited = self.loader.wait_statistics().wait_seconds
        self._clock.mark("other")
        batch = next(batches)
        self._batches_taken = batch.step + 1
        self._clock.mark("host_to_device")
        self._clock.move(self.loader.wait_statistics().wait_seconds - waited, "host_to_device", "data_wait")
        return batch

    def _extras(self, batch: DeviceBatch) -> dict[str, Tensor]:
        """Documents and masks, as far as the batch has them and the model takes them."""
        return {name: tensor for name, tensor in batch.extras.items() if name in self._taken}

    def _metrics(self) -> dict[str, Tensor]:
        """What the model has to tell of its last forward pass, asked before backward, which may do parts of it again.

        Of the batches of one step the last one counts: an interval averages over its steps anyway.
        """
        return self.model.metrics() if isinstance(self.model, LanguageModel) else {}

    def _learning_rate(self) -> float:
        config = self.config
        assert config.warmup is not None
        return learning_rate(
            self.step,
            kind=config.schedule,
            peak=config.lr,
            warmup=config.warmup,
            total=config.steps,
            min_ratio=config.min_lr_ratio,
        )

    def _after_step(self, saver: Saver, feeder: DeviceFeeder) -> None:
        config, last = self.config, self.step == self.config.steps
        if len(self._late) == config.log_every:
            self._close_interval()
        assert config.eval_every
        assert config.sample_every
        assert config.checkpoint_every
        if self.val_loader is not None and (self.step % config.eval_every == 0 or last):
            self._evaluate()
        if self.val_loader is not None and (self.step % config.sample_every == 0 or last):
            self._write_samples()
        if self.step % config.checkpoint_every == 0 and not last:
            self._save(saver, feeder)

    def _close_interval(self) -> None:
        """Send this interval's numbers on their way and report the one before."""
        steps = len(self._late)
        if not steps:
            return
        self._clock.mark("other")
        passed = self._clock.device_marks()  # of the interval before, whose numbers arrive below
        seconds, spans = self._clock.elapsed, self._clock.take()
        self.seconds += seconds
        facts = {
            "step": self.step,
            "steps": steps,
            "lr": self.optimizer.param_groups[0]["lr"],
            "tokens": self.tokens,
            "seconds": seconds,
            "spans": spans,
            "max_wait": self.loader.wait_statistics().max_wait_seconds,
            "loader_step": self._batches_taken,
            **self._usage.read(),
            **source_counts(self.loader, self._batches_taken),
        }
        arrived = self._late.close(facts)
        if arrived is not None and passed:
            arrived.facts["device_spans"] = device_spans(passed)
        self._clock.mark("sync")
        self._report(arrived)
        self._clock.mark("other")

    def _report(self, interval: Interval | None) -> None:
        """Tell the listeners about an interval whose numbers are here."""
        if interval is None:
            return
        found = summarise(interval, self.tokens_per_step)
        self.loss = found.loss
        self._emit("step", **found.fields, mfu=self._mfu(found.rate))
        if found.bad is not None and self.config.nonfinite == "stop":
            step, loss, norm = found.bad
            raise nonfinite(loss, norm, step, interval.facts, self.config)

    def _mfu(self, rate: float) -> float | None:
        """Model FLOPs per second as a share of what the device could do."""
        if self._peak is None or not isinstance(self.model, LanguageModel):
            return None
        return rate * self.model.flops_per_token(self.loader.seq_len) / self._peak

    def _evaluate(self) -> None:
        assert self.val_loader is not None
        self._clock.mark("other")
        found = evaluation.evaluate(
            self.model, self.val_loader, self.config.eval_batches, self.precision, self.device, self.group
        )
        self.val_loss, self._evaluated = found.loss, self.step
        self._clock.mark("evaluation")
        self._emit(
            "eval",
            step=self.step,
            tokens=self.tokens,
            val_loss=found.loss,
            perplexity=found.perplexity,
            accuracy=found.accuracy,
            val_tokens=found.tokens,
        )

    def _write_samples(self) -> None:
        if self.tokenizer is None or not (self.group.main or self._strategy.sharded):
            return
        assert self.val_loader is not None
        self._clock.mark("other")
        for sample in evaluation.write_samples(self.model, self.val_loader, self.tokenizer, self.device):
            self._emit("sample", step=self.step, **sample._asdict())
        self._clock.mark("evaluation")

    def _save(self, saver: Saver, feeder: DeviceFeeder, *, background: bool = True) -> None:
        self._clock.mark("other")
        fresh = self._evaluated == self.step  # an old value would make this checkpoint look as good as that one
        metrics = {"loss": self.loss, **({"val_loss": self.val_loss} if fresh else {})}
        manifest = {**self._description, "tokens": self.tokens, "metrics": metrics}
        progress = Progress(self.step, self.tokens, self.seconds)
        try:
            saver.save(progress, feeder.state_dict(), manifest, background=background)
        except HeadraceError as error:  # the disk is full, for example: the next one may succeed
            if not background:
                raise
            self._say(f"A checkpoint could not be written: {error} Training goes on.")
        self._clock.mark("checkpoint")
        self._emit("checkpoint", step=self.step, folder=str(saver.checkpoints.folder))

    def _resume(self, saver: Saver) -> None:
        found = saver.resume()
        if found is None:
            return
        self.step, self.tokens, self.seconds = found.step, found.state["tokens"], found.state["seconds"]
        self.val_loss, loss = found.manifest.metrics.get("val_loss"), found.manifest.metrics.get("loss")
        self.loss = math.nan if loss is None else loss
        self._say(f"Going on from step {self.step:,} ({found.path.name})")

    def _announce(self) -> None:
        count = sum(parameter.numel() for parameter in self.model.parameters())
        self._emit(
            "run",
            step=self.step,
            steps=self.config.steps,
            parameters=count,
            device=str(self.device),
            ranks=self.group.world_size,
            parallel=self.group.kind,
            peak_flops=self._peak,
            tokens_per_step=self.tokens_per_step,
            config=self.config.as_dict(),
            **self._description,
        )

    def _go_on(self, folder: Path) -> str:
        return f"Run the same command again to go on from the newest checkpoint in {folder}."

    def _say(self, text: str) -> None:
        if self._listeners or not self.group.main:
            self._emit("message", text=text)
        else:
            self._unsaid.append(text)  # said when somebody listens

    def _emit(self, kind: str, **fields: Any) -> None:
        if not self.group.main:
            return
        event = {"t": round(time.time(), 3), "kind": kind, **fields}
        for listener in self._listeners:
            listener(event)
