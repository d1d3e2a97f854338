"""One contender in a process of its own: python -m loading_rivals.run VERB NAME WORKERS SPEC, in bench/."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import time
from typing import Any

from loading_rivals.check import check, joined
from loading_rivals.spec import Spec


def main() -> None:
    verb, name, workers, text = sys.argv[1:]
    contender, spec = importlib.import_module(f"loading_rivals.{name}"), Spec(**json.loads(text)["spec"])
    if verb == "describe":
        result = describe(contender)
    elif verb == "convert":
        result = convert(contender, spec)
    elif verb == "check":
        result = {"rows": check(contender.batches(spec, int(workers)), spec, contender.ORDER)}
    else:
        result = measure(contender, spec, int(workers), json.loads(text)["seconds"])
    # On a line of its own, after whatever the libraries print.
    print("\n" + json.dumps(result), flush=True)


def describe(contender: Any) -> dict[str, Any]:
    version = importlib.metadata.version(contender.PACKAGE)
    return {"workers": contender.WORKERS, "gives": contender.GIVES, "version": f"{contender.PACKAGE} {version}"}


def convert(contender: Any, spec: Spec) -> dict[str, Any]:
    started = time.perf_counter()
    if hasattr(contender, "convert"):
        os.makedirs(spec.folder, exist_ok=True)
        contender.convert(spec)
    return {"seconds": time.perf_counter() - started}


def measure(contender: Any, spec: Spec, workers: int, seconds: float) -> dict[str, Any]:
    started = time.perf_counter()
    batches = contender.batches(spec, workers)
    inputs, targets = next(batches)
    first = time.perf_counter() - started
    if contender.ORDER is not None:
        joined(inputs, targets, spec)
    del inputs, targets
    next(batches)  # the second warm-up batch; what is done once is not what a step waits for
    count, started = 0, time.perf_counter()
    while count < 8 or time.perf_counter() - started < seconds:
        next(batches)
        count += 1
    elapsed = time.perf_counter() - started
    return {"mtok_per_s": spec.rows * spec.length * count / 1e6 / elapsed, "first_ms": first * 1e3, "batches": count}


if __name__ == "__main__":
    main()
