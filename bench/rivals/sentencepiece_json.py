"""Turns a SentencePiece BPE .model into a `tokenizers` tokenizer, as transformers does for Llama and Mistral."""

from sentencepiece import SentencePieceProcessor

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers


def convert(path):
    model = SentencePieceProcessor(model_file=str(path))
    vocab = {model.id_to_piece(i): i for i in range(model.vocab_size())}
    bpe = models.BPE(vocab, merges(model, vocab), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(bpe)
    # No pre-tokenizer: SentencePiece merges across spaces, for instance in a run of spaces that is one piece.
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    # As in the published tokenizer.json files, `</s>` in the text is the special token. SentencePiece itself spells
    # it out, which makes documents about HTML's <s> element differ.
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in control_pieces(model)])
    return tokenizer


def control_pieces(model):
    return [model.id_to_piece(i) for i in range(model.vocab_size()) if model.is_control(i) or model.is_unknown(i)]


def merges(model, vocab):
    """Every split of a piece into two pieces, in the order in which the pieces were learnt (their score)."""
    found = []
    for piece, piece_id in vocab.items():
        splits = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        splits = [pair for pair in splits if pair[0] in vocab and pair[1] in vocab]
        splits.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        found.extend((-model.get_score(piece_id), pair) for pair in splits)
    return [pair for _, pair in sorted(found, key=lambda scored: scored[0])]
