"""The pictures of docs/models.md: how TEN and NeuroGen are built, and where the eigenvalues of a trained TEN lie.

    python bench/models_pictures.py architecture
    python bench/models_pictures.py eigenvalues RUN --out docs/images/eigenvalues.png

RUN is a folder of `headrace train`. All curves are computed by the models' own code, with fixed seeds, so the same
commands draw the same pictures.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from models_pictures_eigenvalues import draw_eigenvalues
from models_pictures_neurogen import draw_neurogen
from models_pictures_ten import draw_ten

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    args = parse()
    if args.command == "eigenvalues":
        draw_eigenvalues(args.run, args.out, checkpoint=args.checkpoint)
        print(args.out)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    for draw, name in ((draw_ten, "ten.png"), (draw_neurogen, "neurogen.png")):
        draw(args.out / name)
        print(args.out / name)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    architecture = commands.add_parser("architecture", help="ten.png and neurogen.png")
    architecture.add_argument("--out", type=Path, default=IMAGES, help="folder")
    eigenvalues = commands.add_parser("eigenvalues", help="of a trained TEN, beside those it began with")
    eigenvalues.add_argument("run", type=Path)
    eigenvalues.add_argument("--out", type=Path, default=IMAGES / "eigenvalues.png")
    eigenvalues.add_argument("--checkpoint", default="latest", choices=("latest", "best"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
