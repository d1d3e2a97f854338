"""Order as arithmetic: a shuffle of n chunks that is computed where it is needed and never stored.

A Feistel network over pairs (high, low), low of k bits and high below ceil(n / 2^k), with k about half the bits of n.
A network on whole bits has a domain of up to 2n, and up to every second index has to walk through it again; this one
has a domain below n + 2^k, so that at most one index in about sqrt(n) walks. A pass for the few that walk takes 25 us,
where the pass for 2,048 indices takes 47.

The order is part of the state of a run: a change here changes the batches of every run that resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UsageError

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Network = Callable[[U64, int, Sequence[U64]], U64]

# Against a true random permutation, over 400,000 draws: 6 rounds show neighbours that stay neighbours up to n of about
# 64 (chi-square 10 sigma off), 8 rounds up to 16, 4 rounds even at 1,000; 12 rounds are clean from n = 9 on.
ROUNDS, SMALL_ROUNDS, SMALL = 6, 12, 256
MAX_LENGTH = 2**62
WORD = 2**64 - 1

# Constants are 0-d arrays: numpy takes 0.33 us for 32 numbers times one of these, 0.59 us times a np.uint64. And
# arithmetic between arrays wraps in silence, where np.uint64 scalars warn.
GOLDEN = np.array(0x9E3779B97F4A7C15, np.uint64)  # splitmix64's step: 2^64 / golden ratio
MIX_1 = np.array(0xBF58476D1CE4E5B9, np.uint64)
MIX_2 = np.array(0x94D049BB133111EB, np.uint64)
HALF = np.array(32, np.uint64)


def permute(positions: I64, n: int, *, seed: int, epoch: int | I64) -> I64:
    """The chunk at each of these positions of a shuffled epoch of n chunks; positions may be of different epochs."""
    return _walk(_forward, positions, n, _keys(n, seed, epoch))


def invert(chunks: I64, n: int, *, seed: int, epoch: int | I64) -> I64:
    """The position of each of these chunks: the inverse of `permute`."""
    return _walk(_backward, chunks, n, _keys(n, seed, epoch))


def derived_seed(seed: int, index: int) -> int:
    """The seed of one source of several, so that two sources of the same size are not shuffled alike."""
    return int(_stream(seed, np.array([index], np.uint64))[0])


def _walk(network: Network, values: I64, n: int, keys: Sequence[U64]) -> I64:
    """Apply the network until the result is below n; it is a bijection of its domain, so it comes back below n."""
    found = network(_checked(values, n), n, keys)
    outside = np.flatnonzero(found >= n)
    while len(outside):
        found[outside] = network(found[outside], n, [key[outside] if key.ndim else key for key in keys])
        outside = outside[found[outside] >= n]
    return found.view(np.int64)


def _checked(values: I64, n: int) -> U64:
    if not 1 <= n <= MAX_LENGTH:
        raise UsageError(f"{n:,} chunks to shuffle: an epoch has 1 to 2^62. Prepare more text, or make chunks shorter.")
    unsigned = np.ascontiguousarray(values, np.int64).view(np.uint64)
    if unsigned.size and unsigned.max() >= n:  # a negative one is above 2^63 here
        raise IndexError(f"position {int(values[unsigned.argmax()])} of {n:,}")
    return unsigned


def _forward(values: U64, n: int, keys: Sequence[U64]) -> U64:
    bits, modulus, shift = _shape(n)
    high, low, scratch = _split(values, bits)
    for even, odd in zip(keys[::2], keys[1::2], strict=True):
        low ^= np.right_shift(_hash(high, even, scratch), shift, out=scratch)
        high += _below(modulus, _hash(low, odd, scratch))
        np.minimum(high, np.subtract(high, modulus, out=scratch), out=high)  # mod: below 0 wraps to a huge number
    return (high << bits) | low


def _backward(values: U64, n: int, keys: Sequence[U64]) -> U64:
    bits, modulus, shift = _shape(n)
    high, low, scratch = _split(values, bits)
    for even, odd in zip(keys[-2::-2], keys[::-2], strict=True):
        high -= _below(modulus, _hash(low, odd, scratch))
        np.minimum(high, np.add(high, modulus, out=scratch), out=high)
        low ^= np.right_shift(_hash(high, even, scratch), shift, out=scratch)
    return (high << bits) | low


def _split(values: U64, bits: U64) -> tuple[U64, U64, U64]:
    high = values >> bits
    return high, values ^ (high << bits), np.empty_like(high)


@lru_cache(maxsize=256)
def _shape(n: int) -> tuple[U64, U64, U64]:
    """Bits of the low half, the modulus of the high half, and the shift that leaves a hash with the low half's bits."""
    bits = max(1, (n - 1).bit_length() // 2)
    return np.array(bits, np.uint64), np.array(-(-n >> bits), np.uint64), np.array(64 - bits, np.uint64)


def _hash(half: U64, key: U64, out: U64) -> U64:
    """Two multiplications with a fold between; only the upper 32 bits are good, and only they are used."""
    np.multiply(np.bitwise_xor(half, key, out=out), MIX_1, out=out)
    out ^= out >> HALF
    return np.multiply(out, MIX_2, out=out)


def _below(modulus: U64, hashed: U64) -> U64:
    """Upper 32 bits scaled to 0 .. modulus - 1: a multiplication where % would be a division."""
    np.multiply(np.right_shift(hashed, HALF, out=hashed), modulus, out=hashed)
    return np.right_shift(hashed, HALF, out=hashed)


def _keys(n: int, seed: int, epoch: int | I64) -> Sequence[U64]:
    """A key per round: one number each, or one per position where positions are of different epochs."""
    rounds = ROUNDS if n >= SMALL else SMALL_ROUNDS
    if not isinstance(epoch, np.ndarray):
        return _epoch_keys(rounds, seed, int(epoch))
    if not epoch.size or epoch.min() == epoch.max():
        return _epoch_keys(rounds, seed, int(epoch[0]) if epoch.size else 0)
    epochs, which = np.unique(epoch, return_inverse=True)
    return [key[which] for key in _expand(rounds, seed, epochs.view(np.uint64))]


@lru_cache(maxsize=256)
def _epoch_keys(rounds: int, seed: int, epoch: int) -> Sequence[U64]:
    return [key.reshape(()) for key in _expand(rounds, seed, np.array([epoch], np.uint64))]


def _expand(rounds: int, seed: int, epochs: U64) -> list[U64]:
    state = _stream(seed, epochs)
    return [_mix(state + GOLDEN * np.array([i + 1], np.uint64)) for i in range(rounds)]


def _stream(seed: int, numbers: U64) -> U64:
    """An independent 64-bit number for each of these, from the seed (any integer, modulo 2^64)."""
    start = _mix(np.array([seed & WORD], np.uint64) + GOLDEN)
    return _mix(start + GOLDEN * (numbers + np.array([1], np.uint64)))


def _mix(values: U64) -> U64:
    """splitmix64's finaliser."""
    values = (values ^ (values >> np.uint64(30))) * MIX_1
    values = (values ^ (values >> np.uint64(27))) * MIX_2
    return values ^ (values >> np.uint64(31))
