from __future__ import annotations

from headrace.documents import Reject
from headrace.sources.batching import Piece, batches, exactly


def test_a_batch_closes_at_the_byte_limit():
    pieces = [Piece([b"aaa", b"bb", b"c"], [], 10), Piece([b"dddd"], [], 5)]
    result = list(batches(pieces, 5, None))
    assert [batch.texts for batch in result] == [[b"aaa", b"bb"], [b"c", b"dddd"]]
    assert sum(batch.input_bytes for batch in result) == 15


def test_a_batch_closes_at_the_document_limit():
    result = list(batches([Piece([b"x"] * 5, [], 5)], 1 << 20, 2))
    assert [len(batch.texts) for batch in result] == [2, 2, 1]


def test_the_remainder_goes_to_the_last_batch():
    result = list(batches([Piece([b"aaaa"], [], 4), Piece([], [], 6)], 4, None))
    assert [(batch.texts, batch.input_bytes) for batch in result] == [([b"aaaa"], 10)]


def test_no_documents_make_one_empty_batch():
    assert [tuple(batch) for batch in batches([Piece([], [], 7)], 4, None)] == [([], [], 7)]


def test_rejects_after_the_last_document_are_kept():
    reject = Reject("f", "line 2", "why")
    result = list(batches([Piece([b"aaaa"], [], 4), Piece([], [reject], 6)], 4, None))
    assert [batch.rejects for batch in result] == [[], [reject]]
    assert sum(batch.input_bytes for batch in result) == 10


def test_advances_are_made_to_sum_to_the_size():
    assert [piece.advance for piece in exactly([Piece([], [], 7), Piece([], [], 7)], 10)] == [7, 3]
    assert [piece.advance for piece in exactly([Piece([], [], 7)], 10)] == [7, 3]
