"""headrace prepare under the name that the original guides use; see docs/from-the-guides.md.

python scripts/pretokenize_and_pack.py --dataset finewebedu --chunk_size 32768 --num_proc 8 --batch_size 2000
"""

from headrace.cli.original import run_original

if __name__ == "__main__":
    run_original("prepare")
