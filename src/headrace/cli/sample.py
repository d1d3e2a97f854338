"""headrace sample"""

from __future__ import annotations

import time
from typing import Any

import click

from headrace.cli.output import err_console, json_option, out_console, print_json, print_text
from headrace.cli.stopping import NOTHING_LOST, stopping
from headrace.errors import UsageError


@click.command(short_help="Let a trained model write.")
@click.argument("run", type=click.Path())
@click.option("-p", "--prompt", multiple=True, help="How the text begins; may be repeated.")
@click.option("-n", "--max-new-tokens", type=click.IntRange(1), default=200, show_default=True)
@click.option("--temperature", type=click.FloatRange(0), default=0.8, show_default=True, help="0: the likeliest token.")
@click.option("--top-k", type=click.IntRange(1), help="Only among the k likeliest.")
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), help="Only among the likeliest with this share.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--checkpoint", default="latest", show_default=True, help="latest, best or a step.")
@click.option("--device", default="auto", show_default=True)
@json_option
def sample(run: str, prompt: tuple[str, ...], checkpoint: str, device: str, as_json: bool, **settings: Any) -> None:
    """Continue each prompt with the model of RUN.

    \b
    headrace sample runs/transformer-micro-python-stdlib --prompt 'def main('
    """
    from headrace.training import load_run

    saved = load_run(run, checkpoint=which_checkpoint(checkpoint), device=device)
    if not hasattr(saved.model, "generate"):
        raise UsageError(f"The model of {run} has no generate(tokens, count): it cannot write text.")
    texts, started, console = [], time.perf_counter(), out_console()
    with stopping(NOTHING_LOST):
        for text in prompt or ("",):
            texts.append(saved.write(text, **settings))
            if not as_json:
                print_text(console, f"{text}{texts[-1]}\n", bold=len(text))
    seconds = time.perf_counter() - started
    if as_json:
        pairs = [{"prompt": text, "text": found} for text, found in zip(prompt or ("",), texts, strict=True)]
        print_json({"step": saved.manifest.step, "seconds": round(seconds, 3), "samples": pairs})
    else:
        tokens = settings["max_new_tokens"] * len(texts)
        err_console().print(f"[label]step {saved.manifest.step:,}, {tokens / seconds:,.0f} tokens/s[/]")


def which_checkpoint(checkpoint: str) -> str | int:
    if checkpoint in ("latest", "best"):
        return checkpoint
    if not checkpoint.isdecimal():
        raise UsageError(f"--checkpoint {checkpoint}: it must be latest, best or a step such as 1000.")
    return int(checkpoint)
