"""The story of the demo, stage by stage. Every stage leaves files; what is told at the end is read out of them."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from headrace.demo import commands, plan
from headrace.demo.findings import Findings, gather
from headrace.demo.folder import DemoFolder
from headrace.demo.pace import seconds_per_step, steps_within
from headrace.demo.page import page
from headrace.demo.plan import DemoConfig
from headrace.demo.screen import Screen
from headrace.diagnosis.script import run_script
from headrace.diagnosis.training import diagnose_run_folder
from headrace.diagnosis.tree import headline
from headrace.errors import HeadraceError, Interrupted, StoreError
from headrace.files import human_bytes, write_atomically
from headrace.pipeline import PrepareConfig, run_prepare
from headrace.sources import open_source, read_spans
from headrace.storage import verify
from headrace.telemetry import encode_json
from headrace.tokenizers.train import train_bpe
from headrace.training import build_trainer, load_run, pick_device

SCRIPT = Path(__file__).with_name("slow_way.py")
STOPPED = {128 + signal.SIGINT, 128 + signal.SIGTERM}  # exit codes


def tell(config: DemoConfig, screen: Screen, began: float | None = None) -> Findings:
    """The whole demo. `began` is when the person pressed Enter, by time.perf_counter()."""
    return Story(config, screen, time.perf_counter() if began is None else began).tell()


class Story:
    def __init__(self, config: DemoConfig, screen: Screen, began: float) -> None:
        self.config, self.screen = config, screen
        self.folder = DemoFolder(config.out)
        self._began, self._last = began, began
        self._number, self._title = 0, "starting"
        self._stages: list[dict[str, Any]] = []

    def tell(self) -> Findings:
        self.folder.claim(self.config, machine())
        self._note("Start Python and torch", "")
        try:
            return self._all()
        except (KeyboardInterrupt, Interrupted) as error:
            raise Interrupted(self._stopped()) from error

    def _all(self) -> Findings:
        folder = self.folder
        self._stage("Train a tokenizer", commands.tokenizer_command(folder), self._train_tokenizer)
        self._stage("Prepare the text", commands.prepare_command(folder), self._prepare)
        self._stage("Check every byte", ["headrace", "verify", str(folder.data)], self._check)
        slow = commands.slow_command(self.config, folder)
        self._stage("Train the slow way, and diagnose it", slow, self._train_slowly)
        for model in plan.MODELS:
            self._train(model)
        self._stage("Diagnose the fast way", commands.compare_command(folder), self._diagnose)
        sample = commands.sample_command(folder, plan.MODELS[0], plan.PROMPTS[0])
        self._stage("Let both models write", sample, self._write)
        return self._conclude()

    def _stage(self, title: str, command: list[str], work: Callable[[], str]) -> None:
        self._number, self._title = self._number + 1, title
        self.screen.stage(self._number, title, command)
        found = work()
        self.screen.done(found, self._note(title, commands.shown(command)))

    def _note(self, title: str, command: str) -> float:
        """A stage is over. It began where the one before ended, so nothing goes uncounted."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self._stages.append({"title": title, "command": command, "seconds": round(seconds, 3)})
        self._keep()
        return seconds

    def _keep(self) -> None:
        total = time.perf_counter() - self._began
        about = {**self.folder.read_about(), "stages": self._stages, "seconds": round(total, 3)}
        self.folder.write_about(about)

    def _train_tokenizer(self) -> str:
        source = open_source([plan.SOURCE])
        texts = [text for batch in read_spans(source.spans(8 << 20), source.options) for text in batch.texts]
        size = sum(map(len, texts))
        train_bpe(texts, self.folder.tokenizer, vocab_size=plan.VOCABULARY)
        return f"{plan.VOCABULARY:,} ids, learned from {human_bytes(size)} of the Python library's own source"

    def _prepare(self) -> str:
        config = PrepareConfig(
            source=plan.SOURCE,
            out=self.folder.data,
            tokenizer=self.folder.tokenizer,
            val_fraction=plan.VAL_FRACTION,
            force=True,
        )
        with self.screen.preparing(f"Preparing {config.out}") as observer:
            store = run_prepare(config, observer)
        self.screen.look(store)
        metadata = store.metadata
        return (
            f"{metadata.total_tokens + metadata.val_tokens:,} tokens of {metadata.documents:,} documents, "
            f"{human_bytes(sum(shard.bytes for shard in metadata.shards))} that open by memory map"
        )

    def _check(self) -> str:
        report = verify(self.folder.data)
        if not report.ok:
            raise StoreError(f"{self.folder.data} is not what was written: {'; '.join(report.problems)}")
        return f"whole: {report.tokens:,} tokens"

    def _train_slowly(self) -> str:
        folder = self.folder
        shutil.copyfile(SCRIPT, folder.script)
        with self.screen.script() as stdout:
            code, report = run_script(commands.slow_script(self.config, folder), out=folder.slow, stdout=stdout)
        if code in STOPPED:
            raise KeyboardInterrupt
        if code or not report.steps:
            why = "; ".join(report.missing) if not code else f"it ended with exit code {code}"
            raise HeadraceError(f"{folder.script} could not be measured: {why}. Run it alone to see more.")
        return headline(report)

    def _train(self, model: str) -> None:
        recipe = commands.recipe_of(self.folder, model, 1)
        steps = steps_within(self.config.part(model), seconds_per_step(recipe))
        recipe = commands.recipe_of(self.folder, model, steps)

        def work() -> str:
            with self.screen.training() as view:
                trainer = build_trainer(recipe, force=True, report=lambda line: None)
                trainer.listen(view)
                result = trainer.run()
            report = diagnose_run_folder(result.out)
            report.save(self.folder.diagnosis(model))
            val = "" if result.val_loss is None else f"validation loss {result.val_loss:.3f}, "
            return f"{result.tokens:,} tokens in {steps:,} steps, {val}{report.tokens_per_second or 0:,.0f} tokens/s"

        self._stage(f"Train a {title_of(model)} the fast way", commands.train_command(recipe), work)

    def _diagnose(self) -> str:
        from headrace.diagnosis.compare import compare_reports
        from headrace.diagnosis.report import load_report

        before, after = load_report(self.folder.slow_report), load_report(self.folder.diagnosis(plan.MODELS[0]))
        return compare_reports(before, after).verdict

    def _write(self) -> str:
        samples = [one for model in plan.MODELS for one in write_samples(self.folder, model)]
        write_atomically(self.folder.samples, encode_json(samples) + b"\n")
        tokens = len(samples) * int(plan.SAMPLING["max_new_tokens"])
        return f"{len(samples)} texts, {tokens / sum(one['seconds'] for one in samples):,.0f} tokens/s at most"

    def _conclude(self) -> Findings:
        """The page needs the time of all that went before it; its own is a few milliseconds."""
        self._title = "writing the page"
        self._keep()
        found = gather(self.folder)
        write_atomically(self.folder.findings, encode_json(found) + b"\n")
        write_atomically(self.folder.page, page(found).encode())
        return found

    def _stopped(self) -> str:
        there = self.folder.what_is_there()
        kept = f"There is {', '.join(there)}. " if there else ""
        return (
            f"Stopped at: {self._title}. {kept}The demo starts over when it is run again, because every number in it "
            "is measured in one run. To go on with a run, use the command that its stage has shown, without --force."
        )


def write_samples(folder: DemoFolder, model: str) -> list[dict[str, Any]]:
    saved = load_run(folder.run(model))
    found = []
    for prompt in plan.PROMPTS:
        began = time.perf_counter()
        text = saved.write(prompt, **plan.SAMPLING)  # type: ignore[arg-type]
        seconds = time.perf_counter() - began
        found.append({"model": model, "prompt": prompt, "text": text, "seconds": round(seconds, 3)})
    return found


def title_of(model: str) -> str:
    return "TEN" if model == "ten" else model


def machine() -> dict[str, Any]:
    """What a reader needs to judge the numbers; the load tells whether others were at work."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cores": cores,
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else pick_device("auto").type,
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
