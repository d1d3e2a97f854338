"""What could make headrace's training loop faster on a CPU: one change at a time, against the loop as it is.

    python bench/training_knobs.py --work WORK --rounds 3 --out knobs.json
    python bench/training_knobs.py --work WORK --only base chunk-2^22 thp

Each variant is a process of its own, with rounds interleaved; what is measured is what bench/training.py measures, on
the same data and the same first weights. Variants that change only memory or scheduling must end with the same loss.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from training_data import prepared, spec_for
from training_run import environment

HERE = Path(__file__).parent
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(4 << 30), "MALLOC_TRIM_THRESHOLD_": str(8 << 30)}
HEADER = (
    "| variant | tokens per CPU-s (median) | lowest - highest | against base | in the kernel | faults per step | "
    "peak MB | loss |"
)
HUGE = {"THP_MEM_ALLOC_ENABLE": "1"}


class Variant(NamedTuple):
    environment: dict[str, str]
    change: str = ""  # a function below, and what it is given
    value: int = 0


VARIANTS: dict[str, Variant] = {
    "base": Variant({}),
    "malloc-keeps": Variant(KEEP),  # freed memory stays with the process and its pages with it
    "malloc-keeps-huge": Variant({**KEEP, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
    "glibc-huge": Variant({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
    "thp": Variant(HUGE),  # torch asks for huge pages for everything of 2 MiB or more
    "thp-malloc-keeps": Variant({**HUGE, **KEEP}),
    **{f"chunk-2^{power}": Variant({}, "chunk", power) for power in (20, 21, 22, 23)},
    "thp-chunk-2^22": Variant(HUGE, "chunk", 22),
    "malloc-keeps-chunk-2^22": Variant(KEEP, "chunk", 22),
    "mallopt": Variant({}, "keep_memory"),  # the same as malloc-keeps, asked for by the running process
    "thp-late": Variant({}, "huge_pages"),  # the same as thp, set by the running process
    "mallopt-thp": Variant(HUGE, "keep_memory"),
    "loss-buffer": Variant({}, "reuse_logits"),  # one buffer for the logits of all chunks and steps
    "loss-buffer-2^22": Variant({}, "reuse_logits", 22),
    "keep-gradients": Variant({}, "keep_gradients"),
    "flush-denormal": Variant({}, "flush_denormal"),
    "unfused-adamw": Variant({}, "unfused"),
    "compile": Variant({}, "compile_model"),
    "thp-compile": Variant(HUGE, "compile_model"),
}


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        run_one(*sys.argv[2:])
        return
    args = parse()
    dataset = prepared(args.dataset, args.work)
    spec = spec_for(
        dataset, args.work, size="micro", shape=args.shape, warm=args.warm, steps=args.steps, threads=args.threads,
        fused=True,
    )  # fmt: skip
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number in range(args.rounds):
        for name in args.only:
            found = started(name, spec)
            runs[name].append(found)
            told = f"round {number + 1}: {name}: {found['tokens_per_cpu_s']:.0f} tokens per CPU-s"
            print(told, file=sys.stderr, flush=True)
    if args.out:
        args.out.write_text(json.dumps(runs, indent=1) + "\n")
    print(table(runs))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path, nargs="?", help="a prepared dataset with a val split")
    parser.add_argument("--work", type=Path, default=Path("bench/work"))
    parser.add_argument("--shape", default="4x512")
    parser.add_argument("--warm", type=int, default=4)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def started(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "training_knobs.py"), "--one", name, json.dumps(spec)]
    inherited = environment(spec["threads"])
    done = subprocess.run(command, cwd=HERE, env=inherited | VARIANTS[name].environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} failed:\n{done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def run_one(name: str, text: str) -> None:
    from training_rivals import headrace
    from training_rivals.run import measure
    from training_rivals.spec import Spec

    spec = Spec(**json.loads(text))
    variant = VARIANTS[name]
    if variant.change:
        CHANGES[variant.change](variant.value)
    print(json.dumps(measure(headrace, spec, train=True)))


def chunk(power: int) -> None:
    from headrace.models import loss

    loss.CHUNK_ON_CPU = 1 << power


def keep_memory(_: int) -> None:
    """mallopt(M_MMAP_THRESHOLD) and mallopt(M_TRIM_THRESHOLD) of glibc."""
    import ctypes

    libc = ctypes.CDLL(None)
    assert libc.mallopt(-3, 1 << 30) == 1
    assert libc.mallopt(-1, (1 << 31) - 1) == 1


def huge_pages(_: int) -> None:
    os.environ |= HUGE


def reuse_logits(power: int) -> None:
    """The loss with its logits and its gradient of the weight in memory that stays."""
    import torch

    from headrace.models import loss

    if power:
        chunk(power)
    kept: dict[tuple[int, ...], torch.Tensor] = {}

    def forward(ctx: Any, hidden: Any, weight: Any, targets: Any, counts: Any, dtype: Any, rows: int) -> Any:
        total = torch.zeros((), dtype=torch.float32)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for part in loss._chunks(len(targets), rows):
            inputs = hidden[part]
            shape = (len(inputs), len(weight))
            logits = kept.setdefault(shape, torch.empty(0))
            if logits.shape != shape:
                logits = kept[shape] = torch.empty(shape)
            torch.mm(inputs, weight.T, out=logits)
            torch._log_softmax(logits, -1, False, out=logits)
            total += loss._negative_log_likelihood(logits, targets[part], counts[part])
            grad = loss._grad_of_logits(logits, targets[part])
            counted = counts[part, None].to(dtype)
            grad_hidden[part] = (grad @ weight) * counted
            grad_weight.addmm_(grad.T, inputs * counted)
        ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    loss._LossAndGradients.forward = staticmethod(forward)  # type: ignore[method-assign]


def keep_gradients(_: int) -> None:
    import torch

    once = torch.optim.Optimizer.zero_grad
    torch.optim.Optimizer.zero_grad = lambda self, set_to_none=True: once(self, set_to_none=False)  # type: ignore[method-assign]


def flush_denormal(_: int) -> None:
    import torch

    assert torch.set_flush_denormal(True)


def unfused(_: int) -> None:
    from headrace.training import optimizer, precision

    optimizer.FUSED_DEVICES = precision.FUSED_DEVICES = ()


def compile_model(_: int) -> None:
    from training_rivals import headrace

    build = headrace.build

    def compiled(spec: Any) -> Any:
        model = build(spec)
        model.compile()
        return model

    headrace.build = compiled


CHANGES: dict[str, Callable[[int], None]] = {
    "chunk": chunk,
    "keep_memory": keep_memory,
    "huge_pages": huge_pages,
    "reuse_logits": reuse_logits,
    "keep_gradients": keep_gradients,
    "flush_denormal": flush_denormal,
    "unfused": unfused,
    "compile_model": compile_model,
}


def table(runs: dict[str, list[dict[str, Any]]]) -> str:
    lines = [HEADER, "|---|---:|---:|---:|---:|---:|---:|---:|"]
    base = middle(runs["base"], "tokens_per_cpu_s") if "base" in runs else None
    for name, found in runs.items():
        rate, rates = middle(found, "tokens_per_cpu_s"), [one["tokens_per_cpu_s"] for one in found]
        lines.append(
            f"| {name} | {rate:,.0f} | {min(rates):,.0f} - {max(rates):,.0f} | {f'{rate / base:.3f}x' if base else ''} "
            f"| {middle(found, 'system_share'):.1%} | {middle(found, 'faults_per_step'):,.0f} "
            f"| {middle(found, 'peak_mb'):,.0f} | {middle(found, 'loss'):.4f} |"
        )
    return "\n".join(lines)


def middle(found: list[dict[str, Any]], key: str) -> float:
    return statistics.median(one[key] for one in found)


if __name__ == "__main__":
    main()
