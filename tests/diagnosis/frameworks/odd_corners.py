"""What a probe can trip over: whole graphs, compiled optimizers, forks, a trace function, calls without a frame."""

import atexit
import os
import sys
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ids = torch.randint(16, (4, 9))


@torch.compile(backend="eager", fullgraph=True)
def loss_of(rows):
    return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


@torch.compile(backend="eager")
def update():
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def train(steps, step):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(ids)
        loss.backward()
        step()
    print(f"loss {loss.item():.4f}")


def traced(steps):
    seen = []
    sys.settrace(lambda frame, event, argument: seen.append(event))
    train(steps, optimizer.step)
    sys.settrace(None)
    print("traced", bool(seen))


def fork():
    child = os.fork()
    if child == 0:
        os._exit(3)
    print("child left with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


train(6, update)
traced(2)
fork()
train(2, optimizer.step)
atexit.register(print, "printed from C")
if "HEADRACE_DIAGNOSE_OUT" in os.environ:
    assert [thread.name for thread in threading.enumerate()].count("headrace-probe") == 1
raise RuntimeError("the last line of its traceback is shown")
