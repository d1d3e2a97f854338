"""Stand-ins for torch.cuda: a device that says what scripts ask for, streams and events that do nothing but record."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch

from headrace.diagnosis.fake_cuda.record import Recorder

NAME = "NVIDIA H100 80GB HBM3 (not there)"
MEMORY = 80 << 30
PROPERTIES = {"name": NAME, "total_memory": MEMORY, "major": 9, "minor": 0, "multi_processor_count": 132,
              "warp_size": 32, "max_threads_per_multi_processor": 2048, "gcnArchName": "", "is_integrated": False,
              "shared_memory_per_block_optin": 232448}  # fmt: skip
SILENT = ("set_device", "set_stream", "empty_cache", "ipc_collect", "manual_seed", "manual_seed_all", "seed",
          "seed_all", "set_rng_state", "set_rng_state_all", "reset_peak_memory_stats", "reset_max_memory_allocated",
          "reset_accumulated_memory_stats", "set_per_process_memory_fraction", "_lazy_init", "init",
          "set_sync_debug_mode")  # fmt: skip
NOTHING_USED = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "utilization",
                "memory_usage", "current_device", "get_sync_debug_mode", "initial_seed", "_exchange_device",
                "_maybe_exchange_device")  # fmt: skip


def event_type(recorder: Recorder) -> type:
    class Event:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

        def record(self, stream: Any = None) -> None:
            pass

        def wait(self, stream: Any = None) -> None:
            pass

        def query(self) -> bool:
            return True

        def synchronize(self) -> None:
            recorder.sync("synchronize")

        def elapsed_time(self, end: Any) -> float:
            return 1.0

    return Event


def stream_type(recorder: Recorder, event: type) -> type:
    class Stream:
        device = torch.device("cuda", 0)
        device_index, stream_id, cuda_stream, priority = 0, 0, 0, 0

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

        def wait_stream(self, stream: Any) -> None:
            pass

        def wait_event(self, event: Any) -> None:
            pass

        def record_event(self, made: Any = None) -> Any:
            return made or event()

        def query(self) -> bool:
            return True

        def is_capturing(self) -> bool:
            return False

        def synchronize(self) -> None:
            recorder.sync("synchronize")

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: Any) -> None:
            pass

    return Stream


def cuda_names(recorder: Recorder) -> dict[str, Any]:
    """What takes the place of names in torch.cuda."""
    event = event_type(recorder)
    stream = stream_type(recorder, event)
    current = stream()
    return {
        **{name: lambda *args, **kwargs: None for name in SILENT},
        **{name: lambda *args, **kwargs: 0 for name in NOTHING_USED},
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *args, **kwargs: True,
        "is_tf32_supported": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "device_count": lambda: 1,
        "get_device_name": lambda *args: NAME,
        "get_device_capability": lambda *args: (9, 0),
        "get_device_properties": lambda *args: SimpleNamespace(**PROPERTIES),
        "get_arch_list": lambda: ["sm_90"],
        "mem_get_info": lambda *args: (MEMORY, MEMORY),
        "memory_stats": lambda *args: {},
        "memory_summary": lambda *args, **kwargs: "",
        "get_rng_state": lambda *args: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)],
        "synchronize": lambda *args, **kwargs: recorder.sync("synchronize"),
        "Event": event,
        "Stream": stream,
        "stream": lambda stream: nullcontext(stream),
        "device": lambda device: nullcontext(),
        "current_stream": lambda *args: current,
        "default_stream": lambda *args: current,
    }


def accelerator_names(cuda: dict[str, Any]) -> dict[str, Any]:
    """What takes the place of names in torch.accelerator, which DataLoader and optimizers ask."""
    same = ("is_available", "device_count", "synchronize", "current_stream", "set_stream", "empty_cache",
            "memory_stats", *(name for name in NOTHING_USED if name in vars(torch.accelerator)))  # fmt: skip
    return {
        **{name: cuda[name] for name in same},
        "current_accelerator": lambda *args, **kwargs: torch.device("cuda"),
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": lambda *args: None,
        "set_device_idx": lambda *args: None,
        "get_memory_info": cuda["mem_get_info"],
    }


def maybe_step(scaler: Any, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """GradScaler asks whether a gradient overflowed, which is a sync, and with an invented 1.0 would never step."""
    for found in state["found_inf_per_device"].values():
        found.item()
    return optimizer.step(*args, **kwargs)
