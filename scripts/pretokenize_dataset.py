"""headrace prepare under the name that the original guides use; see docs/from-the-guides.md.

python scripts/pretokenize_dataset.py --dataset cerebras/SlimPajama-627B --output data/slimpajama --tokenizer FILE.model
"""

from headrace.cli.original import run_original

if __name__ == "__main__":
    run_original("prepare")
