"""Where the time of headrace's training loop goes: spans of a step, what the spans cost, and operators.

    python bench/training_profile.py --work WORK --steps 40 --out profile.json

Spans are those that the Trainer itself reports, after the first interval. Their cost is measured in two ways: marks of
a step times the time of a mark, and steps of a very small model with and without marks in turn, where a microsecond
shows. Operators are those of torch's profiler over a few steps, with what each kind takes of the CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from training_data import prepared, spec_for
from training_rivals.headrace import build, make_trainer
from training_rivals.meter import read
from training_rivals.spec import LOG_EVERY, Spec

from headrace.training.spans import SPANS, SpanClock

WORK_OF_A_STEP = ("forward", "backward", "optimizer")
KINDS = {  # the first that fits; names as torch's profiler has them, by self time
    "matrix products": ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm"),
    "attention": ("flash_attention",),
    "softmax and loss": ("softmax", "aten::exp_", "_lossandgradients", "gather", "scatter", "nll_loss"),
    "optimizer and clipping": ("adamw", "norm_except", "linalg", "foreach"),
    "norms": ("rms_norm", "rsqrt", "aten::mean", "aten::pow"),
    "copies": ("aten::copy_", "aten::cat", "aten::fill_", "aten::zero_", "aten::embedding_dense_backward"),
    "elementwise": (
        "aten::mul",
        "aten::mul_",
        "aten::add",
        "aten::add_",
        "silu",
        "aten::sub",
        "aten::neg",
        "aten::div",
        "aten::sum",
    ),
}


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    dataset = prepared(args.dataset, args.work)
    spec = make_spec(dataset, args, args.size, args.shape, LOG_EVERY, max(LOG_EVERY, args.steps))
    spans = measure_spans(spec)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load_average": os.getloadavg(),
        "threads": args.threads,
        "shape": args.shape,
        "spans": spans,
        "span_cost": span_cost(make_spec(dataset, args, "nano", "1x64", 0, args.tiny_steps), spans["step_seconds"]),
        "limit": product_limit(spec),
        "operators": operators(make_spec(dataset, args, args.size, args.shape, 0, args.profiled)),
    }
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(report(result))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, nargs="?", help="a prepared dataset with a val split")
    parser.add_argument("--work", type=Path, default=Path("bench/work"))
    parser.add_argument("--size", default="micro")
    parser.add_argument("--shape", default="4x512", help="rows x tokens of a batch")
    parser.add_argument("--steps", type=int, default=40, help="for the spans, after one interval of warm-up")
    parser.add_argument("--tiny-steps", type=int, default=600, help="of the small model, half with marks")
    parser.add_argument("--profiled", type=int, default=5, help="steps under torch's profiler")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    return parser.parse_args()


def make_spec(dataset: Path, args: argparse.Namespace, size: str, shape: str, warm: int, steps: int) -> Spec:
    found = spec_for(
        dataset, args.work, size=size, shape=shape, warm=warm, steps=steps, threads=args.threads, fused=True
    )
    return Spec(**found)


def started(spec: Spec) -> Any:
    shutil.rmtree(spec.out, ignore_errors=True)
    return make_trainer(build(spec), spec, Path(spec.out))


def measure_spans(spec: Spec) -> dict[str, Any]:
    """Seconds per span of all intervals but the first, and page faults of a step."""
    trainer, events = started(spec), []
    trainer.listen(lambda event: events.append({**event, "read": read()}))
    trainer.run()
    steps = [event for event in events if event["kind"] == "step"][1:]
    seconds = sum(event["seconds"] for event in steps)
    count = sum(event["steps"] for event in steps)
    sums = {name: sum(event["spans"][name] for event in steps) for name in SPANS}
    return {
        "steps": count,
        "step_seconds": seconds / count,
        "shares": {name: value / seconds for name, value in sums.items()},
        "outside": 1 - sum(sums[name] for name in WORK_OF_A_STEP) / seconds,
        "data_wait": sums["data_wait"] / seconds,
        "worst_wait_ms": max(event["max_wait"] for event in steps) * 1e3,
    }


class NoClock(SpanClock):
    """Counts what it is asked for, and does nothing else."""

    marks = 0

    def mark(self, name: str) -> float:
        self.marks += 1
        return 0.0

    def move(self, seconds: float, source: str, target: str) -> None:
        pass


def span_cost(spec: Spec, step_seconds: float) -> dict[str, float]:
    per_mark, per_move = time_of_marks()
    with_marks, without, marks = steps_in_turn(spec)
    saved = statistics.median(with_marks) - statistics.median(without)
    return {
        "marks_per_step": marks,
        "mark_us": per_mark * 1e6,
        "move_us": per_move * 1e6,
        "share_of_a_step": (marks * per_mark + per_move) / step_seconds,
        "tiny_step_ms": statistics.median(with_marks) * 1e3,
        "tiny_step_without_ms": statistics.median(without) * 1e3,
        "tiny_difference_us": saved * 1e6,
    }


def time_of_marks(count: int = 200_000) -> tuple[float, float]:
    clock = SpanClock(torch.device("cpu"))
    began = time.perf_counter()
    for _ in range(count):
        clock.mark("forward")
    between = time.perf_counter()
    for _ in range(count):
        clock.move(1e-9, "forward", "data_wait")
    return (between - began) / count, (time.perf_counter() - between) / count


def steps_in_turn(spec: Spec) -> tuple[list[float], list[float], float]:
    """CPU seconds of each step, with the Trainer's clock and with one that does nothing, in turn; marks per step."""
    trainer, silent = started(spec), NoClock(torch.device("cpu"))
    clocks = [trainer._clock, silent]
    found: tuple[list[float], list[float]] = ([], [])
    one_step = trainer._one_step

    def timed(batches: Any) -> None:
        turn = trainer.step % 2
        trainer._clock = clocks[turn]
        began = time.thread_time()
        one_step(batches)
        found[turn].append(time.thread_time() - began)

    trainer._one_step = timed
    trainer.run()
    return found[0][10:], found[1][10:], silent.marks / len(found[1])


def product_limit(spec: Spec) -> dict[str, float]:
    """The matrix products of a step alone, each into memory that is there already: no loop can be faster."""
    config = json.loads((Path(spec.llama) / "config.json").read_text())
    width, ffn, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    tokens = spec.tokens_per_step
    block = 4 * products(tokens, width, width) + 2 * products(tokens, width, ffn) + products(tokens, ffn, width)
    rows = min(tokens, 512)  # all logits at once would measure memory
    seconds = layers * block + tokens / rows * products(rows, width, config["vocab_size"])
    weights = layers * (4 * width * width + 3 * width * ffn) + width * config["vocab_size"]
    return {"tokens_per_cpu_s": tokens / seconds, "gflops": 6 * weights * tokens / seconds / 1e9}


def products(rows: int, inner: int, outer: int) -> float:
    """CPU seconds of one layer's three products: forward, and the gradients of its input and of its weight."""
    x, weight, grad = torch.randn(rows, inner), torch.randn(outer, inner), torch.randn(rows, outer)
    jobs = [(x, weight.T), (grad, weight), (grad.T, x)]
    return sum(best_of(left, right, torch.empty(left.shape[0], right.shape[1])) for left, right in jobs)


def best_of(left: torch.Tensor, right: torch.Tensor, out: torch.Tensor, times: int = 5) -> float:
    found = []
    for _ in range(times):
        began = time.process_time()
        torch.mm(left, right, out=out)
        found.append(time.process_time() - began)
    return min(found[1:])


def operators(spec: Spec) -> dict[str, Any]:
    trainer = started(spec)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        trainer.run()
    shutil.rmtree(spec.out)
    rows = [(row.key, row.self_cpu_time_total / 1e6, row.count) for row in found.key_averages()]
    total = sum(seconds for _, seconds, _ in rows)
    kinds: dict[str, float] = dict.fromkeys([*KINDS, "other"], 0.0)
    for name, seconds, _ in rows:
        kinds[kind_of(name)] += seconds / total
    top = sorted(rows, key=lambda row: -row[1])[:15]
    return {
        "steps": spec.steps,
        "kinds": kinds,
        "top": [{"name": name, "share": seconds / total, "calls_per_step": n / spec.steps} for name, seconds, n in top],
    }


def kind_of(name: str) -> str:
    lower = name.lower()
    for kind, parts in KINDS.items():
        if any(lower == part or (not part.startswith("aten::") and part in lower) for part in parts):
            return kind
    return "other"


def report(result: dict[str, Any]) -> str:
    spans, cost, found = result["spans"], result["span_cost"], result["operators"]
    limit = result["limit"]
    lines = [f"{spans['steps']} steps of {spans['step_seconds']:.3f} s", "", "| span | share |", "|---|---:|"]
    lines += [f"| {name} | {share:.3%} |" for name, share in spans["shares"].items()]
    waits = (
        f"outside forward, backward and optimizer {spans['outside']:.3%}, data wait {spans['data_wait']:.4%}, "
        f"worst wait {spans['worst_wait_ms']:.2f} ms"
    )
    marks = (
        f"a mark {cost['mark_us']:.2f} us, all {cost['marks_per_step']:.0f} marks {cost['share_of_a_step']:.5%} of "
        f"a step; tiny step {cost['tiny_step_ms']:.2f} ms with and {cost['tiny_step_without_ms']:.2f} ms without marks"
    )
    lines += [
        "",
        waits,
        marks,
        f"matrix products alone: {limit['tokens_per_cpu_s']:,.0f} tokens per CPU-s, {limit['gflops']:.0f} GFLOP/s",
        "",
        "| kind of operator | share of CPU time |",
        "|---|---:|",
        *(f"| {kind} | {share:.1%} |" for kind, share in found["kinds"].items()),
        "",
        "| operator | share of CPU time | calls per step |",
        "|---|---:|---:|",
        *(f"| `{row['name']}` | {row['share']:.1%} | {row['calls_per_step']:.0f} |" for row in found["top"]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
