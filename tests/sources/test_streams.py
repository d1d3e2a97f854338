from __future__ import annotations

import gzip
import os

import pytest
import zstandard

from headrace.sources.damage import Damaged
from headrace.sources.streams import InputStream, seekable

DATA = b"".join(b"line %d\n" % number for number in range(50_000))


def unpacked(path, compression):
    stream = InputStream(str(path), compression or None)
    data = b"".join(stream.blocks())
    assert stream.position == os.path.getsize(path)
    return data


def test_round_trip(tmp_path, suffix, compress):
    path = tmp_path / "data"
    path.write_bytes(compress(suffix, DATA))
    assert unpacked(path, suffix[1:]) == DATA


def test_members_and_frames_are_read_to_the_end(tmp_path, suffix, compress):
    path = tmp_path / "data"
    path.write_bytes(compress(suffix, DATA) + compress(suffix, b"") + compress(suffix, b"second"))
    assert unpacked(path, suffix[1:]) == DATA + b"second"


def test_gzip_may_be_padded_with_zeros(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(b"a") + bytes(1000))
    assert unpacked(path, "gz") == b"a"


def test_skippable_zstd_frames_are_skipped(tmp_path):
    path = tmp_path / "data"
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
    path.write_bytes(skippable + zstandard.compress(b"a") + skippable + zstandard.compress(b"b"))
    assert unpacked(path, "zst") == b"ab"


@pytest.mark.parametrize("kept", [0.001, 0.5, 0.999])
def test_a_cut_stream_is_damage(tmp_path, packed, compress, kept):
    path = tmp_path / "data"
    data = compress(packed, DATA)
    path.write_bytes(data[: max(1, int(len(data) * kept))])
    with pytest.raises(Damaged, match="cut short"):
        unpacked(path, packed[1:])


def test_a_corrupt_stream_is_damage(tmp_path, packed, compress):
    path = tmp_path / "data"
    data = bytearray(compress(packed, DATA))
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    path.write_bytes(data)
    with pytest.raises(Damaged, match="corrupt"):
        unpacked(path, packed[1:])


def test_an_empty_compressed_file_is_damage(tmp_path, packed):
    path = tmp_path / "data"
    path.write_bytes(b"")
    with pytest.raises(Damaged, match="empty"):
        unpacked(path, packed[1:])


def test_a_bomb_is_given_out_in_small_blocks(tmp_path, packed, compress):
    path = tmp_path / "data"
    path.write_bytes(compress(packed, bytes(64 << 20)))
    blocks = [len(block) for block in InputStream(str(path), packed[1:]).blocks()]
    assert sum(blocks) == 64 << 20
    assert packed == ".zst" or max(blocks) <= 1 << 20


def test_the_decompressed_copy_is_removed(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(b"abc"))
    with seekable(str(path), "gz") as copy, open(copy, "rb") as file:
        assert file.read() == b"abc"
    assert not os.path.exists(copy)
    with seekable(str(path), None) as same:
        assert same == str(path)
    assert path.exists()
