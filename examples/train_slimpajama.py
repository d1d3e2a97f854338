"""headrace train under the name that the original guides use; see docs/from-the-guides.md.

python examples/train_slimpajama.py --test --verbose
python examples/train_slimpajama.py --max-chunks 10 --tokens-per-chunk 512
"""

from headrace.cli.original import run_original

if __name__ == "__main__":
    run_original("train", dataset="slimpajama")
