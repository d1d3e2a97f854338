"""Megatron-core's GPTDataset over the merged shards of the dataset, with the loader settings of its training script."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from megatron.core.datasets.utils import Split
from torch.utils.data import DataLoader

from loading_rivals.memmap_chunks import endless

WORKERS = (0, 2)
GIVES = "torch"
ORDER = "documents"  # it shuffles documents before it cuts samples
PACKAGE = "megatron-core"


def convert(spec):
    """Merge the shards, which are Megatron's own format, and build its three index files."""
    builder = IndexedDatasetBuilder(str(spec.own / "merged.bin"), dtype=np.dtype(spec.dtype).type)
    for index in sorted(Path(spec.dataset).glob("shard-*.idx")):
        builder.add_index(str(index.with_suffix("")))
    builder.finalize(str(spec.own / "merged.idx"))
    dataset(spec)


def dataset(spec):
    prefix = str(spec.own / "merged")
    # Only these facts of a tokenizer are asked for. The vocabulary size chooses the type it reads, uint16 here.
    tokenizer = SimpleNamespace(
        eod=spec.eos, pad=spec.pad, vocab_size=int(np.iinfo(np.uint16).max), unique_identifiers={"name": "bench"}
    )
    if spec.dtype != "uint16":
        tokenizer.vocab_size = 1 << 20
    config = GPTDatasetConfig(
        random_seed=0,
        sequence_length=spec.length,
        blend=([prefix], None),
        split="1,0,0",
        path_to_cache=str(spec.own / "cache"),
        tokenizer=tokenizer,
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    documents = GPTDataset.build_low_level_dataset(prefix, config)
    indices = np.arange(GPTDataset.numel_low_level_dataset(documents), dtype=np.int32)
    return GPTDataset(documents, prefix, indices, None, Split.train, config)


def batches(spec, workers):
    options = {"drop_last": True, "num_workers": workers, "persistent_workers": workers > 0}
    # In the order of its own shuffle index, as its sampler for one rank does.
    for batch in endless(DataLoader(dataset(spec), batch_size=spec.rows, **options)):
        yield batch["tokens"], batch["labels"]
