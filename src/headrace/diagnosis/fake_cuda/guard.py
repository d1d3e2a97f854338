"""A device guard for CUDA in a torch that has none, and the versions of torch that all of this was seen to work with.

Before every operator torch asks the guard of the tensor's device which device is current. A CPU build has no guard for
CUDA and aborts. torch has one that does nothing, made for tracing, but installs it only over a guard that counts no
devices. So an object whose every method returns 0 goes into the empty place first, and torch replaces it with its own.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import torch

from headrace.errors import HeadraceError

TESTED = ((2, 13),)
REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"  # c10::impl::device_guard_impl_registry
DEVICE_TYPES = 16  # more than the places that are read: CUDA is number 1
CUDA = 1
METHODS = 64  # more than a guard has


def refusal(version: str, platform: str) -> str | None:
    """Why CUDA cannot be faked with this torch on this system, or None."""
    release = tuple(int(part) for part in version.split("+")[0].split(".")[:2])
    tested = " and ".join(f"{major}.{minor}" for major, minor in TESTED)
    if release not in TESTED:
        return (
            f"torch {version} is not among the versions with which CUDA can be faked ({tested}): it rests on torch's "
            f"inner parts, which change. Run this command on a machine with a GPU, where any version will do, or "
            f"install torch {tested} in an environment beside this one."
        )
    if platform != "linux":
        return (
            f"CUDA can be faked on Linux only, and this is {platform}. Run this command on Linux, with or without GPU."
        )
    return None


def install_guard() -> None:
    """Let operators on CUDA tensors run in this process, as far as fake tensors need it."""
    if trouble := refusal(torch.__version__, sys.platform):
        raise HeadraceError(trouble)
    if not _install():
        raise HeadraceError(
            f"torch {torch.__version__} did not take its own empty CUDA guard: CUDA cannot be faked here."
        )


def _install() -> bool:
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    registry = (ctypes.c_void_p * DEVICE_TYPES).in_dll(library, REGISTRY)
    if registry[CUDA]:  # a build with CUDA, which torch itself makes harmless
        torch._C._ensureCUDADeviceGuardSet()
        return True
    zero = ctypes.PYFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(lambda _: 0)  # called from torch._C, with the GIL held
    methods = (ctypes.c_void_p * METHODS)(*[ctypes.cast(zero, ctypes.c_void_p).value] * METHODS)
    guard = (ctypes.c_void_p * 1)(ctypes.addressof(methods))
    ours = ctypes.addressof(guard)
    registry[CUDA] = ours
    torch._C._ensureCUDADeviceGuardSet()
    if registry[CUDA] == ours:  # never leave a pointer to memory that goes away with this function
        registry[CUDA] = None
    return bool(registry[CUDA])
