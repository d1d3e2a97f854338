"""Files -> spans. The cuts depend on the file and the target size only, never on who reads them."""

from __future__ import annotations

from itertools import pairwise

from headrace.sources import arrow, parquet, text
from headrace.sources.damage import Damaged, refusal
from headrace.sources.opening import is_remote, nearest
from headrace.sources.span import ReadOptions, SourceFile, Span
from headrace.sources.stripes import SHAREABLE


def split(file: SourceFile, options: ReadOptions, target: int, *, share: bool = False) -> list[Span]:
    """`share`: whether a file may be divided that costs something to divide: a compressed one, one on the hub."""
    whole = Span(file.path, file.format, file.size, file.compression)
    if file.compression:
        shared = share and _can_share(file) and file.size > target
        return _ranges(whole, _even_cuts(file.size, target)) if shared else [whole]
    if file.format == "text" and not options.separator and file.size > text.LARGE_BYTES:
        return _ranges(whole, _marks(file.size, max(1, target // text.PART_BYTES) * text.PART_BYTES))
    if file.size <= target:
        return [whole]
    if file.format == "jsonl" or (file.format == "text" and can_split(options.separator)):
        return _ranges(whole, _even_cuts(file.size, target))
    if file.format in ("parquet", "arrow") and (not is_remote(file.path) or (share and file.format == "parquet")):
        return _split_columns(whole, options, target)
    return [whole]  # to find the middle of an Arrow file means to read what lies before


def _can_share(file: SourceFile) -> bool:
    """Not a file on the hub: every worker would fetch what lies before its part."""
    return file.format == "jsonl" and file.compression in SHAREABLE and not is_remote(file.path)


def can_split(separator: str | None) -> bool:
    """Whether a separator is found alike from any place: '---' in '----' is not, newlines are, as they are stripped."""
    if not separator:
        return False
    overlaps = any(separator.endswith(separator[:length]) for length in range(1, len(separator)))
    return not overlaps or not separator.strip("\n")


def _even_cuts(size: int, target: int) -> list[int]:
    count = max(1, round(size / target))
    return [size * number // count for number in range(count + 1)]


def _marks(size: int, step: int) -> list[int]:
    return [*range(0, size, step), size]


def _ranges(whole: Span, cuts: list[int]) -> list[Span]:
    return [_part(whole, start, stop, stop - start) for start, stop in pairwise(cuts)]


def _part(whole: Span, start: int, stop: int, size: int) -> Span:
    return Span(whole.path, whole.format, size, whole.compression, start, stop)


def _split_columns(whole: Span, options: ReadOptions, target: int) -> list[Span]:
    try:
        sizes = _group_sizes(whole)
    except Damaged as damage:
        if not options.keep_damaged:
            raise refusal(whole.path, damage, 0) from None
        return [whole]
    cuts, shares = group(sizes, whole.size, target)
    return [_part(whole, cuts[i], cuts[i + 1], shares[i + 1] - shares[i]) for i in range(len(cuts) - 1)] or [whole]


def _group_sizes(whole: Span) -> list[int]:
    path = nearest(whole.path)
    if whole.format == "parquet":
        return parquet.row_group_sizes(path)
    return [1] * arrow.record_batches(path) if arrow.is_file_format(path) else []


def group(sizes: list[int], file_size: int, target: int) -> tuple[list[int], list[int]]:
    """Cuts between consecutive groups, and the file's bytes before each cut in proportion to the groups' sizes."""
    total = max(1, sum(sizes))
    cuts, shares, seen = [0], [0], 0
    for number, size in enumerate(sizes, 1):
        seen += size
        share = file_size * seen // total if number < len(sizes) else file_size
        if share - shares[-1] >= target or number == len(sizes):
            cuts.append(number)
            shares.append(share)
    return cuts, shares
