"""Strings on which tokenizers are known to disagree."""

from __future__ import annotations

from collections.abc import Sequence

CONTROL_LOOKALIKES = (
    "<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>", "[INST]",
    "[CLS]", "[SEP]", "[PAD]", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>",
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<0x0A>", "<|bos|>", "<|pad|>",
)  # fmt: skip

SPACES = (
    " ", "  ", "   ", " a", "a ", " a ", "  a  b  ", "\t", "\t\t a", "\n", "\n\n", "\n\n\n\na", " \n \n ", "\r\n", "\r",
    "a\r\nb\r\n\r\nc", "a\n \n  b", "\u00a0", "\u3000あ", "\u2028\u2029", "\u0085", "\u180e", "\u200b", "\u202f1",
    "a\u00a0b", "\x0b\x0c", "    def f():\n\t\treturn 1\n", "\n    \n        x", " \u2003 \u2009",
)  # fmt: skip

UNICODE = (
    "\x00", "a\x00b", "\x00\x00\x00", "\ufeff", "\ufeffabc", "a\ufeffb", "\x7f", "\x1b[0m", "\ufffd", "\uffff",
    "\U0010ffff", "\ue000", "e\u0301", "é", "\u0301", "ﬁ",
    "ℌ", "①②", "½", "٣٤٥", "१२३", "Ⅷ", "ß", "ẞ", "İ", "ı", "ſ", "K",
    "👨‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "☺️", "\u200d", "❤️‍🔥 ok", "日本語テキスト、漢字。", "汉字漢字", "한국어 조선말",
    "العربية ١٢٣", "עברית", "हिन्दी", "ไทย", "Ελληνικά", "Русский язык", "Tiếng Việt", "\u202eabc\u202c",
    "Z̷̧͠a̶l̵g̴o̸", "ｆｕｌｌ　ｗｉｄｔｈ", "𝒳𝓎𝓏", "𐍈", "𠀀", "a\u0300\u0301\u0302b", "ǅ", "ჯორჯია", "\u1e9e",
)  # fmt: skip

WORDS = (
    "", "a", "I'm you're he'll THEY'VE o'clock 'tis don'T", "’s ‘quoted’ “double”", "1 12 123 1234 12345 1,234.56",
    "0x1F 1e-9 3.14159265358979", "camelCaseHTTPServer snake_case SCREAMING_CASE kebab-case",
    "https://a.b/c?d=e&f=%20#g",
    "!!!???...---", "(((([[[[{{{{<<<<", "a/b\\c", "$x = \"y\"; // z", "<div class=\"a\">b</div>",
    "#include <stdio.h>\n", "▁", "▁▁a", "a▁b", "Ġ", "Ċ", "##ing", "<0x41>", "\\n\\t", "a\tb\tc", "ABCdef123!?",
    "'S 'LL 'd've",
)  # fmt: skip

LONG = (
    "a" * 20_000, "ab" * 5_000, " " * 5_000 + "a", "\n" * 5_000, "0" * 5_000, "é" * 5_000, "漢" * 5_000, "=" * 5_000,
    "👍" * 2_000, "x " * 5_000, "\t" * 3_000 + "x",
)  # fmt: skip


def nasty_texts(control_texts: Sequence[str]) -> list[bytes]:
    """The fixed set, and every control token of this tokenizer in the middle of text and alone."""
    controls = dict.fromkeys([*control_texts[:64], *CONTROL_LOOKALIKES])
    wrapped = [form for text in controls for form in (text, f"a{text}b", f" {text} {text}\n")]
    return [text.encode() for text in (*WORDS, *SPACES, *UNICODE, *LONG, *wrapped)]
