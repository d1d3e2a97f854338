"""torch.compile: the same numbers and names, and a fallback that says why."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

from conftest_training import batch, loss_of, small_model
from headrace.errors import UsageError
from headrace.training.compile import is_compiled, maybe_compile, run_guarded


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def failing_forward(graph: Any, inputs: Any) -> Callable[..., Any]:
    raise RuntimeError("no C++ compiler here\nand pages more")


def failing_backward(graph: Any, inputs: Any) -> Callable[..., Any]:
    """Compiles the forward, and fails where the gradients are computed, after some of them are there."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def broken(*args: Any) -> Any:
        raise RuntimeError("the backward was miscompiled")

    compiler = aot_autograd(
        fw_compiler=lambda g, _: make_boxed_func(g.forward), bw_compiler=lambda g, _: make_boxed_func(broken)
    )
    compiled: Callable[..., Any] = compiler(graph, inputs)
    return compiled


def step_of(model: nn.Module) -> Callable[[], float]:
    def step() -> float:
        loss = loss_of(model, batch())
        loss.backward()
        return loss.item()

    return step


def with_dropout() -> nn.Module:
    model = small_model()
    return nn.Sequential(model, nn.Dropout(0.5))


class OneKernel(nn.Module):
    """As little as there is to compile: every kernel is one run of the C++ compiler, of seconds.

    Not a Sequential: torch does not trace a forward of its own that stands at the top, and compiles nothing there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.table(tokens))


@pytest.mark.parametrize("backend", [failing_forward, failing_backward])
def test_failing_compiler_falls_back_to_the_same_numbers(backend: Callable[..., Any]) -> None:
    plain, model = with_dropout(), with_dropout()
    torch.manual_seed(5)
    expected = step_of(plain)()
    lines: list[str] = []
    assert maybe_compile(model, enabled=True, report=lines.append, backend=backend) is model
    assert is_compiled(model)
    torch.manual_seed(5)
    assert run_guarded(model, step_of(model), report=lines.append) == expected
    assert not is_compiled(model)
    assert len(lines) == 1
    assert "no C++ compiler here" in lines[0] or "the backward was miscompiled" in lines[0]
    assert lines[0].endswith("training goes on without torch.compile")
    assert "\n" not in lines[0]
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        assert p.grad is not None
        assert q.grad is not None
        assert torch.equal(p.grad, q.grad)
    assert run_guarded(model, step_of(model), report=lines.append) > 0
    assert len(lines) == 1


@pytest.mark.slow
# torch warns of its own torch.jit.script_method when it first imports inductor.
@pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_inductor_gives_the_same_numbers_under_the_same_names() -> None:
    plain, model = OneKernel(), OneKernel()
    model.load_state_dict(plain.state_dict())
    lines: list[str] = []
    maybe_compile(model, enabled=True, report=lines.append)
    # Neither vector code nor a header compiled in advance pays for one kernel: 11 s without them, 25 s with.
    cheap = torch._inductor.config.patch({"cpp.simdlen": 1, "cpp_cache_precompile_headers": False})
    with cheap, torch._inductor.utils.fresh_cache():
        loss = run_guarded(model, step_of(model), report=lines.append)
    assert torch._inductor.metrics.generated_kernel_count > 0  # else nothing would have been compiled
    assert lines == []
    assert is_compiled(model)
    assert loss == pytest.approx(step_of(plain)(), rel=1e-5)
    assert model.state_dict().keys() == plain.state_dict().keys()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


def test_error_that_is_not_the_compilers_comes_through() -> None:
    model = small_model()
    maybe_compile(model, enabled=True, report=lambda line: None, backend="eager")
    with pytest.raises(IndexError, match="index out of range"):
        run_guarded(model, lambda: model(torch.full((1, 4), 10**6)), report=lambda line: None)


def test_out_of_memory_is_not_blamed_on_the_compiler() -> None:
    model = small_model()
    lines: list[str] = []
    maybe_compile(model, enabled=True, report=lines.append, backend="eager")

    def step() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        run_guarded(model, step, report=lines.append)
    assert is_compiled(model)
    assert lines == []


def test_system_that_cannot_compile_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("torch.compile is not supported on this Python")

    monkeypatch.setattr(torch, "compile", refuse)
    lines: list[str] = []
    model = maybe_compile(small_model(), enabled=True, report=lines.append)
    assert not is_compiled(model)
    assert len(lines) == 1
    assert "not supported on this Python" in lines[0]


@pytest.mark.parametrize("enabled", [False, "auto"])
def test_not_compiled_on_a_cpu_unless_asked(enabled: bool | str) -> None:
    lines: list[str] = []
    assert not is_compiled(maybe_compile(small_model(), enabled=enabled, report=lines.append))
    assert lines == []


def test_settings_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="compile 'yes' is not one of auto, True, False"):
        maybe_compile(small_model(), enabled="yes", report=lambda line: None)
    with pytest.raises(UsageError, match="compile mode 'fast' is not one of default"):
        maybe_compile(small_model(), enabled=True, mode="fast", report=lambda line: None)
