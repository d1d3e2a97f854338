"""The text of each token of a chunk: pieces that make up the decoded text exactly.

A character's bytes may lie in several tokens. It belongs to the one in which they end; the tokens before it have no
text. Only `decode` is asked, so this holds for every kind of tokenizer, spaces and bytes treated its own way: a few
tokens are decoded together, with the ones before them as context, and compared with the text of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.errors import StoreError
from headrace.tokenizers import Tokenizer

ADDITIVE = ("bytes", "tekken", "tiktoken")  # kinds whose text is the bytes of the tokens, one behind the other
WINDOW = 64  # tokens decoded together at most; only a decoder that is unlike all known ones needs so many
BROKEN = "\N{REPLACEMENT CHARACTER}"

Decode = Callable[[Sequence[int]], str]


class Pieces:
    """A tokenizer, asked for the text of single tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.special = control_ids(tokenizer)
        self._additive = tokenizer.kind in ADDITIVE
        self._alone: dict[int, str] = {}

    def of(self, ids: Sequence[int]) -> list[str]:
        """One text for each token; joined they are the decoded text."""
        walk = Walk(self.decode, ids, self.alone if self._additive else None)
        for number in range(len(ids)):
            walk.step(number)
        return walk.finished()

    def alone(self, one: int) -> str:
        """The text of a token by itself, U+FFFD where that is part of a character."""
        if one not in self._alone:
            self._alone[one] = self.decode([one])
        return self._alone[one]

    def inside(self, one: int, before: int) -> str:
        """The text of a token behind an ordinary one: with the space that some decoders leave out at a beginning."""
        head, both = self.alone(before), self.decode([before, one])
        return both[len(head) :] if both.startswith(head) and one not in self.special else self.alone(one)

    def decode(self, ids: Sequence[int]) -> str:
        try:
            return self.tokenizer.decode(ids)
        except Exception as error:  # each library has its own for an id that it does not know
            raise StoreError(
                f"The tokenizer {self.tokenizer.name} cannot decode these ids ({type(error).__name__}: {error}): they "
                f"are not its own. Run 'headrace verify' on the dataset."
            ) from error


class Walk:
    """Shares a text out among its tokens, from left to right.

    `settled` tokens have all their text: `mark` characters. Tokens from `context` to there are decoded again with the
    ones behind them, because a decoder may treat the first token of what it is given in another way.
    """

    def __init__(self, decode: Decode, ids: Sequence[int], alone: Callable[[int], str] | None) -> None:
        self._decode, self._ids, self._alone = decode, ids, alone
        self._text = decode(ids)
        self._pieces: list[str] = []
        self._given = 0  # characters that have a token
        self._context = self._settled = self._mark = 0
        self._base = ""  # the text of the context
        self._maybe: tuple[int, int] | None = None  # settled here, if what follows adds a character of its own

    def finished(self) -> list[str]:
        if self._pieces:
            self._pieces[-1] += self._text[self._given :]
        return self._pieces

    def step(self, number: int) -> None:
        if self._alone is not None and self._settled == number:
            text = self._alone(self._ids[number])
            if text and BROKEN not in text and self._text.startswith(text, self._given):
                self._give(len(text))
                self._settle(number + 1, self._given)
                return
        self._step_together(number)

    def _step_together(self, number: int) -> None:
        found = self._decode(self._ids[self._context : number + 1])
        if not found.startswith(self._base):
            self._unsettled(number)
            return
        new = found[len(self._base) :]
        if not self._text.startswith(new, self._mark):
            same = _common(new, self._text[self._mark : self._mark + len(new)])
            self._give(max(0, self._mark + same - self._given))
            self._unsettled(number, given=True)
            return
        grown = self._mark + len(new) - self._given
        if self._maybe is not None and grown > 0:
            self._settle(*self._maybe)
        self._give_whole(grown, found)
        if found.endswith(BROKEN):
            self._maybe = (number + 1, self._given)  # whole, or the beginning of a character that the text has so too
        else:
            self._settle(number + 1, self._given)

    def _give_whole(self, count: int, found: str) -> None:
        self._give(max(0, count))
        if count <= 0 and found.endswith(BROKEN) and self._given > self._mark:
            self._move_last_character()

    def _move_last_character(self) -> None:
        """More bytes of a character that was there already: it ends here."""
        for place in range(len(self._pieces) - 2, -1, -1):
            if self._pieces[place]:
                self._pieces[place], self._pieces[-1] = self._pieces[place][:-1], self._pieces[place][-1]
                return

    def _give(self, count: int) -> None:
        self._pieces.append(self._text[self._given : self._given + count])
        self._given += count

    def _settle(self, settled: int, mark: int) -> None:
        if settled > self._settled:
            self._context = settled if self._alone is not None else self._settled
            self._settled, self._mark = settled, mark
            self._base = self._decode(self._ids[self._context : settled]) if self._context < settled else ""
        self._maybe = None

    def _unsettled(self, number: int, *, given: bool = False) -> None:
        if not given:
            self._give(0)
        self._maybe = None
        if number - self._context >= WINDOW:
            whole = self._decode(self._ids[: number + 1])
            end = _common(whole, self._text)
            self._pieces[-1] += self._text[self._given : end]
            self._given = max(self._given, end)
            self._context = self._settled = number + 1
            self._mark, self._base = self._given, ""


def _common(first: str, second: str) -> int:
    """How many characters at the beginning of both are the same."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(second)))


def control_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Ids that stand for no text of a document."""
    special = tokenizer.special
    spelled = (tokenizer.token_id(text) for text in tokenizer.control_texts())
    return frozenset(one for one in (special.eos, special.bos, special.pad, *spelled) if one is not None)
