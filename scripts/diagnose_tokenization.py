"""headrace diagnose tokenization under the name that the original guides use; see docs/from-the-guides.md.

python scripts/diagnose_tokenization.py --dataset my-texts.jsonl --tokenizer FILE.model
"""

import sys

from headrace.cli.original import run_original

if __name__ == "__main__":
    sys.argv.insert(1, "tokenization")
    run_original("diagnose")
