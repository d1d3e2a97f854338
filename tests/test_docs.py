"""What the documents say is so: links lead somewhere, commands parse, code runs, tables agree with the code."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from headrace import TokenStore, prepare
from headrace.cli.main import cli
from headrace.sources.catalogue import ENTRIES, NAMES
from headrace.sources.suffixes import COMPRESSIONS, FORMATS
from headrace.storage import manifest
from test_layers import LAYERS

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "examples", "bench")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def prose(document: str) -> str:
    return FENCE.sub("", document)


def blocks(document: str, *languages: str) -> list[str]:
    return [body for _, language, body in FENCE.findall(document) if language in languages]


# Links


def anchors(document: str) -> set[str]:
    """The names that a hub gives to headings."""
    headings = re.findall(r"^#+ +(.+)$", prose(document), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> Iterator[str]:
    for target in LINK.findall(prose(path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        destination = (path.parent / file).resolve() if file else path
        if not destination.exists():
            yield f"{name(path)}: {target} leads nowhere"
        elif anchor and anchor not in anchors(destination.read_text(encoding="utf-8")):
            yield f"{name(path)}: {target}: there is no such heading"


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    assert list(broken_links(path)) == []


def test_a_broken_link_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading: two\n[a](page.md#a-heading-two) [b](#nothing) [c](gone.md) [d](https://x.y/z)\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert list(broken_links(page)) == [
        "page.md: #nothing: there is no such heading",
        "page.md: gone.md leads nowhere",
    ]


# Commands


def commands(document: str) -> list[str]:
    lines = "\n".join(blocks(document, "", "sh", "bash", "console")).replace("\\\n", " ").splitlines()
    return [line.strip().removeprefix("$ ") for line in lines if re.match(r" *(\$ )?headrace ", line)]


def parse(line: str) -> str | None:
    """The command's name; raises what click raises for a command, option or value that does not exist."""
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(cli, info_name="headrace", **cli.context_settings)
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]!r}")
        command, context = found, click.Context(found, info_name=words[0], parent=context)
        words = words[1:]
    if not isinstance(command, click.Group):
        with contextlib.suppress(click.exceptions.Exit):  # --help
            command.make_context(command.name, words, parent=context.parent)
    return command.name


ALL_COMMANDS = [(name(path), line) for path in DOCUMENTS for line in commands(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("document", "line"), ALL_COMMANDS)
def test_commands_parse(document: str, line: str) -> None:
    assert parse(line) in line.split()


def test_commands_are_found() -> None:
    assert {line.split()[1] for _, line in ALL_COMMANDS} >= {"prepare", "inspect", "verify", "tokenizer"}


@pytest.mark.parametrize(
    "line",
    [
        "headrace fetch corpus",
        "headrace prepare corpus --no-such-option",
        "headrace prepare corpus --packing loose",
        "headrace prepare corpus --chunk-size many",
        "headrace tokenizer guess",
        "headrace verify",
    ],
)
def test_a_wrong_command_is_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(line)


def options(*words: str) -> list[str]:
    command: Any = cli
    for word in words:
        command = command.get_command(click.Context(command), word)
    found = [option for option in command.params if isinstance(option, click.Option)]
    return [spelling for option in found for spelling in (*option.opts, *option.secondary_opts)]


@pytest.mark.parametrize("verb", ["prepare", "train"])
def test_every_option_is_explained(verb: str) -> None:
    guide = text(f"docs/{verb}.md")
    missing = [option for option in options(verb) if not re.search(rf"{option}(?![\w-])", guide)]
    assert missing == []


# Code


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset that the documents speak of, in several shards and with documents set aside."""
    folder = tmp_path_factory.mktemp("workplace")
    settings = {"chunk_size": 64, "val_fraction": 0.2, "task_bytes": 20_000, "max_chunks": 400}
    prepare("python-stdlib", out=folder / "data" / "stdlib", **settings)
    return folder


def execute(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "documentation", "exec"), names)
    return names


def snippet(document: str, heading: str) -> str:
    return blocks(text(document).split(f"## {heading}\n")[1], "python")[0]


def test_numpy_reads_a_dataset_as_the_guide_says(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workplace)
    read = execute(snippet("docs/formats.md", "Reading it with numpy"))
    store = TokenStore("data/stdlib")
    assert len(store.shards) > 1
    assert store.metadata.val_documents > 0
    assert len(read["documents"]) == store.num_documents
    for number, document in enumerate(read["documents"]):
        assert np.array_equal(document, store.document(number))
    expected = store.tokenizer.reference().encode([store.decode(store.document(0)[:-1]).encode()])[0]
    assert read["documents"][0].tolist() == [*expected.tolist(), store.metadata.eos_token_id]
    assert np.array_equal(read["chunks"], np.stack(list(store)))


# Those that run on what every machine has; Megatron is not installed here.
SNIPPETS = [
    (document, number, code)
    for document in ("docs/prepare.md", "docs/loading.md", "docs/train.md", "docs/tokenizers.md", "docs/formats.md")
    for number, code in enumerate(blocks(text(document), "python"))
    if "megatron" not in code
]


@pytest.mark.parametrize(("document", "number", "code"), SNIPPETS, ids=lambda value: str(value)[:24].split("\n")[0])
def test_python_in_the_guides_runs(
    document: str, number: int, code: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    assert execute(code), f"{document} block {number} defines nothing"


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(text("README.md"), "python")
    read = execute(code)
    assert read["store"].num_documents > read["val"].num_documents > 0


# Tables


def test_the_layers_are_those_of_the_test() -> None:
    table = FENCE.findall(text("ARCHITECTURE.md").split("## Layers\n")[1])[0][2]
    assert [line.split(" | ") for line in table.splitlines()] == LAYERS


def test_the_catalogue_is_the_one_in_the_code() -> None:
    section = text("docs/prepare.md").split("### The catalogue\n")[1].split("\n## ")[0]
    for entry in ENTRIES:
        (row,) = [line for line in section.splitlines() if line.startswith(f"| `{entry.name}`")]
        for word in (*entry.aliases, entry.repo, entry.splits["train"], *(set(entry.splits) - {"train"})):
            assert word in row, (entry.name, word)
    assert all(f"| `{one}`" in section for one in NAMES)


def test_the_sizes_are_those_of_the_model() -> None:
    import torch

    from headrace.models.transformer import SIZES, Transformer, TransformerConfig

    section = text("docs/train.md").split("## Models\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    expected = []
    for size, shape in SIZES.items():
        with torch.device("meta"):
            model = Transformer(TransformerConfig(vocab_size=32_768, **shape))
        config, count = model.config, model.parameter_count
        expected.append(
            f"| `{size}` | {count():,} | {count(embeddings=False):,} | {config.layers} | {config.width:,} | "
            f"{config.heads} ({config.groups}) | {config.context:,} |"
        )
    assert rows == expected


def test_every_suffix_is_listed() -> None:
    section = text("docs/prepare.md").split("### Formats and compressions\n")[1].split("\n## ")[0]
    assert [suffix for suffix in (*FORMATS, *COMPRESSIONS) if f"`{suffix}`" not in section] == []


def test_every_field_of_the_manifest_is_explained() -> None:
    section = text("docs/formats.md").split("## metadata.json\n")[1].split("\n## ")[0]
    rows = "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))
    assert [field for field in manifest.Metadata.__struct_fields__ if f"`{field}`" not in rows] == []
