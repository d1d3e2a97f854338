"""Trains until its record says so, and is killed on the spot: what was written till then is the report."""

import json
import os
import signal
from pathlib import Path

import torch
import torch.nn as nn

record = Path(os.environ["HEADRACE_DIAGNOSE_OUT"]) / f"process-{os.getpid()}.json"
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
while not (record.exists() and json.loads(record.read_text())["steps"]["count"] >= 20):
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(32, 64)).square().mean().backward()
        optimizer.step()
os.kill(os.getpid(), signal.SIGKILL)
