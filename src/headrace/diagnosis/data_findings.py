"""What the measurements of loading mean: how many times what training needs, how long a step waits, a verdict."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.diagnosis import tokenization_findings
from headrace.diagnosis.data_machine import Memory, Mount
from headrace.diagnosis.data_rounds import Spread
from headrace.diagnosis.data_timing import Cold
from headrace.diagnosis.report import Report
from headrace.diagnosis.tokenization_findings import duration, percent
from headrace.loading.memory import SHARE

POPULATE = "populate"
RATES = (*tokenization_findings.RATES, 10_000_000.0)  # tokens/s, when nobody says how fast training is
WAITS = 0.01  # of a step; less is nobody's problem


class Findings(msgspec.Struct, kw_only=True):
    names: list[str]  # the folders
    need: float | None  # of training, tokens/s
    seq_len: int
    batch_size: int
    dtype: str  # of a batch
    stored: str  # of the shards
    row_bytes: int  # of a sequence and its next token, as stored
    tokens: int
    bytes: int
    shards: int
    access: str  # as the Loader calls it: populate, random, normal
    mount: Mount | None
    memory: Memory
    resident: int | None  # bytes in the page cache before anything was read
    warm: Spread  # tokens/s
    warm_minor: float  # page faults a batch
    warm_major: float
    warm_open: float  # seconds
    warm_first: float  # of the first batch
    copy: Spread  # tokens/s of a plain copy
    cold: Cold | None = None
    sequential: Spread | None = None  # bytes/s of the disk
    random: Spread | None = None  # a row at a time

    @property
    def cold_rate(self) -> float | None:
        return None if self.cold is None else self.cold.tokens_per_second.value

    @property
    def batch_bytes(self) -> int:
        """What a batch needs of the shards."""
        return self.batch_size * self.row_bytes

    @property
    def fits(self) -> bool:
        """By the loader's own measure."""
        return self.bytes <= SHARE * self.memory.available

    @property
    def share_of_copy(self) -> float:
        return self.warm.value / self.copy.value

    @property
    def amplification(self) -> float | None:
        """Bytes from disk for each byte that a batch needs."""
        if self.cold is None or self.cold.read_bytes is None:
            return None
        return self.cold.read_bytes / self.batch_bytes

    @property
    def reading(self) -> float | None:
        """Seconds in which the disk gives all of it in order."""
        return None if self.sequential is None else self.bytes / self.sequential.value

    def lost_at_start(self) -> float | None:
        """Seconds that training waits until everything is in memory; None where that is not known, or never so.

        With `populate` the loader reads the whole dataset in order beside the first batches; otherwise a row comes into
        memory when it is first used, and the last of them at the end of the first epoch.
        """
        cold, reading = self.cold_rate, self.reading
        if self.need is None or cold is None or reading is None or not self.fits:
            return None
        waits = wait_share(self.need, cold)
        epoch = self.tokens / min(cold, self.need)
        return waits * (min(reading, epoch) if self.access == POPULATE else epoch)

    @property
    def crossing(self) -> float:
        """The share of rows that go on in the next shard, which are copied one by one."""
        return min(1.0, (self.shards - 1) * self.seq_len / self.tokens)

    def bytes_per_second(self, tokens_per_second: float) -> float:
        """Of the shards, at a rate in tokens."""
        return tokens_per_second / self.seq_len * self.row_bytes

    def needs(self) -> list[dict[str, Any]]:
        return [self._against(rate) for rate in ((self.need,) if self.need else RATES)]

    def _against(self, rate: float) -> dict[str, Any]:
        cold = self.cold_rate
        return {
            "tokens_per_second": rate,
            "bytes_per_second": self.bytes_per_second(rate),
            "warm_times": self.warm.value / rate,
            "warm_wait": wait_share(rate, self.warm.value),
            "cold_times": None if cold is None else cold / rate,
            "cold_wait": None if cold is None else wait_share(rate, cold),
        }


def findings_of(report: Report) -> Findings:
    """Those that a report was made of."""
    return msgspec.convert(report.facts["measured"], Findings)


def wait_share(need: float, given: float) -> float:
    """Of a step: a thread gathers beside the training, so nothing is waited for until it is the slower of the two."""
    return max(0.0, 1.0 - given / need)


def verdict(findings: Findings) -> str:
    warm, cold, need = findings.warm.value, findings.cold_rate, findings.need
    given = f"The loader gives {warm:,.0f} tokens/s from memory"
    if need is None:
        from_disk = f" and {cold:,.0f} from a cold disk" if cold is not None else ""
        least = min(warm, warm if cold is None else cold)
        return f"{given}{from_disk}: training waits for this data only above {least:,.0f} tokens/s."
    known = f"{given}, training needs {need:,.0f}: {times(warm / need)} what is needed"
    if wait_share(need, warm) >= WAITS:
        share = percent(wait_share(need, warm))
        when_cold = f", and {percent(wait_share(need, cold))} when cold" if cold is not None and cold < warm else ""
        return f"Training waits for this data. {known}, so a step waits {share} of its time{when_cold}."
    if cold is None:
        return f"From memory training does not wait for this data. {known}. From a cold disk: not measured."
    if wait_share(need, cold) < WAITS:
        return f"Training does not wait for this data. {known}, and {times(cold / need)} when the cache is cold."
    waits = f"Cold it gives {cold:,.0f}: the step waits {percent(wait_share(need, cold))} of its time"
    if (lost := findings.lost_at_start()) is not None:
        until = f"until the data are in memory: {said(lost)} in all"
        return f"Training waits for this data at first. {known}. {waits} {until}."
    return f"Training waits for this data. {known}. {waits}, in every epoch: the data do not fit into memory."


def times(factor: float) -> str:
    """24,000 times, 3.2 times, 0.45 times."""
    return f"{factor:,.0f} times" if factor >= 9.95 else f"{factor:.2g} times"


def said(seconds: float) -> str:
    return duration(seconds / 3600)
