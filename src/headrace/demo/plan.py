"""DemoConfig: what the demo is asked for, and what it decides: model, data, and how the time is divided."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.errors import UsageError

SOURCE = "python-stdlib"
MODELS = ("transformer", "ten")  # the first is also trained the slow way
SIZE = "nano"
# With the built-in vocabulary of 32,768 the table is 80% of a nano model. Bits a byte on validation after about a
# minute of one core: 2.29 with 32,768 ids (95,000 tokens in that time), 1.90 with 4,096 (320,000), 1.83 with 2,048
# (350,000), 1.69 with 1,024 (390,000). Training such a tokenizer takes 3 s of one core.
VOCABULARY = 1024
# 8 rows of 128 tokens learn more in as long than 4 of 256: 1.83 instead of 1.87 bits a byte.
LENGTH, ROWS = 128, 8
LR, WARMUP = 6e-3, 20
PRECISION = "fp32"  # in both ways, on every device, so that they can be compared
VAL_FRACTION = 0.02
EVALUATIONS, EVAL_BATCHES = 5, 4
LOG_EVERY = 5
SHARES = {"slow": 0.16, "transformer": 0.42, "ten": 0.42}  # of the seconds for training
PROMPTS = ("class Stack:\n    def __init__(self", "def main(", "import os\n")
SAMPLING = {"max_new_tokens": 96, "temperature": 0.6, "top_k": 40, "seed": 1}


@dataclass(frozen=True, kw_only=True)
class DemoConfig:
    out: Path = Path("demo")
    seconds: float = 90.0  # that train; all the rest takes about half a minute

    def __post_init__(self) -> None:
        if not 0 < self.seconds < 86_400:
            raise UsageError(f"--seconds {self.seconds:g}: it must be above 0, and a day is too long for a demo.")

    def part(self, name: str) -> float:
        """Seconds of training that belong to this part."""
        return self.seconds * SHARES[name]
