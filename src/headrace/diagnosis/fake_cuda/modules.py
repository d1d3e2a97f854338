"""Stand-ins for moving a module and for backward, both of which torch refuses to do with fake tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

Move = Callable[[torch.Tensor], torch.Tensor]


class Moving:
    """`Module._apply` that puts new parameters in the place of old ones; a weight of two modules stays one."""

    def __init__(self) -> None:
        self._moved: dict[int, tuple[Any, Any]] = {}  # by id; the old one is kept, or its id would be given out again
        self._depth = 0

    def apply(self, module: Any, move: Move, recurse: bool = True) -> Any:
        self._depth += 1
        try:
            for child in module.children() if recurse else ():
                child._apply(move)  # not self.apply: RNNs add something of their own
            self._parameters(module, move)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = move(buffer)
        finally:
            self._depth -= 1
            if not self._depth:
                self._moved.clear()
        return module

    def _parameters(self, module: Any, move: Move) -> None:
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in self._moved:
                self._moved[id(parameter)] = (parameter, _moved(parameter, move))
            module._parameters[name] = self._moved[id(parameter)][1]


def _moved(parameter: Any, move: Move) -> Any:
    with torch.no_grad():
        result = move(parameter)
    if result is parameter:
        return parameter
    if not isinstance(result, FakeTensor) and not isinstance(parameter, FakeTensor):
        parameter.data = result
        return parameter
    return torch.nn.Parameter(result, parameter.requires_grad)


def leaves(roots: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The parameters that these tensors were computed from."""
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen, found = set(waiting), []
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        following = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= following
        waiting += following
    return found


def backward_with(real: Callable[..., None]) -> Callable[..., None]:
    """Gradients without the autograd engine, which wants a device: they only have to be there."""

    def backward(tensors: torch.Tensor | Sequence[torch.Tensor], *args: Any, **kwargs: Any) -> None:
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        reached = leaves(roots)
        if not any(isinstance(leaf, FakeTensor) for leaf in reached):
            real(tensors, *args, **kwargs)
            return
        for leaf in reached:
            _accumulate(leaf)

    return backward


def grad_with(real: Callable[..., Any]) -> Callable[..., Any]:
    def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        asked = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
        if not any(isinstance(tensor, FakeTensor) for tensor in asked):
            return real(outputs, inputs, *args, **kwargs)
        return tuple(torch.empty_like(tensor) for tensor in asked)

    return grad


def _accumulate(leaf: torch.Tensor) -> None:
    with torch.no_grad():
        gradient = torch.empty_like(leaf)
        leaf.grad = gradient if leaf.grad is None else leaf.grad.add_(gradient)
        hooks = getattr(leaf, "_post_accumulate_grad_hooks", None) or {}
        for hook in list(hooks.values()):
            hook(leaf)
