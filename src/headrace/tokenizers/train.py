"""Train a byte-level BPE tokenizer on any documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from headrace.errors import UsageError
from headrace.tokenizers.tiktoken_ranks import ALIASES, PATTERNS

END = "<|endoftext|>"
# Without the possessive quantifiers of tiktoken's spelling, which the trainer's regex engine does not read.
TRAINING_PATTERNS = {
    "cl100k_base": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"
    ),
    "o200k_base": PATTERNS["o200k_base"].regex,
}


def train_bpe(
    texts: Iterable[bytes],
    out: Path,
    *,
    vocab_size: int = 32_768,
    pattern: str = "o200k_base",
    control_tokens: tuple[str, ...] = (END,),
    show_progress: bool = False,
) -> Path:
    """Write a Hugging Face tokenizer.json whose control tokens stand at the end of the id range."""
    if vocab_size < 256 + len(control_tokens):
        raise UsageError(
            f"--vocab-size {vocab_size} is too small: it must hold the 256 bytes and {len(control_tokens)} control "
            f"tokens. Pass at least {256 + len(control_tokens)}."
        )
    tokenizer = _untrained(ALIASES.get(pattern, pattern))
    tokenizer.train_from_iterator(_strings(texts), _trainer(vocab_size - len(control_tokens), show_progress))
    tokenizer.add_special_tokens(list(control_tokens))
    out.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out), pretty=False)
    return out


def _strings(texts: Iterable[bytes]) -> Iterator[str]:
    for text in texts:
        yield text.decode()


def _untrained(pattern: str) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    if pattern not in TRAINING_PATTERNS:
        raise UsageError(f"--pattern {pattern!r} is unknown. Use one of: {', '.join(TRAINING_PATTERNS)}.")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(TRAINING_PATTERNS[pattern]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _trainer(vocab_size: int, show_progress: bool) -> Any:
    from tokenizers import pre_tokenizers, trainers

    return trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=32,  # longer ones are rulers and padding that no sentence needs
        show_progress=show_progress,
    )
