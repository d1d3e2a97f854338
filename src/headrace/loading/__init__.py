"""Stores + seed + step -> batches, in an order that depends on nothing else."""

from headrace.loading.feed import Batch
from headrace.loading.live import LiveText
from headrace.loading.loader import Loader
from headrace.loading.mixture import Mixture
from headrace.loading.sampler import Sampler
from headrace.loading.waits import WaitStatistics

__all__ = ["Batch", "LiveText", "Loader", "Mixture", "Sampler", "WaitStatistics"]
