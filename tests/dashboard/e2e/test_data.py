"""The browser for prepared data: a chunk as text, its documents, its tokens, lengths and frequencies."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from conftest_browser import Opener, Server, by_id, series, wait_until
from headrace.storage import TokenStore

PAGE = "/data/tales?chunk=1&size=128"
SHOWN = """index => document.querySelector("[data-testid=chunk-number]").value === String(index) &&
  !document.querySelector("[data-testid=chunk]").hasAttribute("aria-busy")"""


@pytest.fixture(scope="module")
def store(world: Server) -> TokenStore:
    return TokenStore(world.data / "tales")


def text_of(page: Page) -> str:
    """What the tokens say, without the marks at the beginning of documents."""
    script = "all => all.map((token) => token.textContent).join('')"
    found: str = by_id(page, "chunk").locator(".token").evaluate_all(script)
    return found


def expected(store: TokenStore, index: int, size: int) -> str:
    return store.decode(store.tokens(index * size, min((index + 1) * size, store.total_tokens)).tolist())


def test_the_list_of_datasets(world: Server, show: Opener, store: TokenStore) -> None:
    page = show(world.address, "/data")
    card = page.locator("[data-dataset=tales]")
    expect(card).to_contain_text("ready")
    expect(card).to_contain_text("headrace-32k")
    page.keyboard.press("j")
    expect(page.locator(".dataset-card").first).to_be_focused()
    card.click()
    expect(by_id(page, "splits")).to_contain_text(f"{store.total_tokens:,}")
    expect(by_id(page, "title")).to_have_text("tales")


def test_a_chunk_is_the_text_of_its_tokens(world: Server, show: Opener, store: TokenStore) -> None:
    page = show(world.address, PAGE)
    wait_until(page, SHOWN, 1)
    assert text_of(page) == expected(store, 1, 128)
    assert by_id(page, "chunk").locator(".token").count() == 128


def test_documents_are_told_apart(world: Server, show: Opener, store: TokenStore) -> None:
    page = show(world.address, "/data/tales?chunk=0&size=256")
    wait_until(page, SHOWN, 0)
    documents = by_id(page, "chunk").locator(".document")
    numbers = documents.evaluate_all("all => all.map((one) => Number(one.dataset.document))")
    assert numbers == list(range(len(numbers)))
    assert len(numbers) > 3
    begins = by_id(page, "chunk").locator(".begins")
    assert begins.count() == len(numbers)
    expect(begins.nth(1)).to_have_text("¶ 1")
    colours = "all => all.slice(0, 2).map((one) => getComputedStyle(one.querySelector('.token')).backgroundColor)"
    tones = documents.evaluate_all(colours)
    assert tones[0] != tones[1]


def test_a_token_says_its_id(world: Server, show: Opener, store: TokenStore) -> None:
    page = show(world.address, PAGE)
    wait_until(page, SHOWN, 1)
    ids = store.tokens(128, 256).tolist()
    by_id(page, "chunk").locator("[data-at='5']").hover()
    expect(by_id(page, "token")).to_contain_text(f"id {ids[5]}")
    expect(page.locator(".tip")).to_contain_text(str(ids[5]))
    page.mouse.move(0, 0)
    expect(page.locator(".tip")).to_be_hidden()
    by_id(page, "chunk").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(by_id(page, "token")).to_contain_text(f"token 6 id {ids[6]}")


def test_from_chunk_to_chunk_with_keys(world: Server, show: Opener, store: TokenStore) -> None:
    page = show(world.address, PAGE)
    wait_until(page, SHOWN, 1)
    page.keyboard.press("ArrowRight")
    wait_until(page, SHOWN, 2)
    assert text_of(page) == expected(store, 2, 128)
    expect(page).to_have_url(re.compile("chunk=2&size=128"))
    page.keyboard.press("k")
    page.keyboard.press("k")
    wait_until(page, SHOWN, 0)
    expect(by_id(page, "chunk-previous")).to_be_disabled()
    page.keyboard.press("/")
    expect(by_id(page, "chunk-number")).to_be_focused()
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    wait_until(page, SHOWN, 3)
    assert text_of(page) == expected(store, 3, 128)
    by_id(page, "chunk-size").select_option("256")
    wait_until(page, SHOWN, 1)  # the same place, in larger chunks
    assert text_of(page) == expected(store, 1, 256)
    again = show(world.address, page.url.removeprefix(world.address))
    wait_until(again, SHOWN, 1)
    assert text_of(again) == text_of(page)


def test_what_was_set_aside(world: Server, show: Opener) -> None:
    page = show(world.address, "/data/tales?split=val&chunk=0&size=128")
    wait_until(page, SHOWN, 0)
    assert text_of(page) == expected(TokenStore(world.data / "tales", split="val"), 0, 128)
    expect(by_id(page, "chunk-split")).to_have_value("val")


def test_lengths_and_frequencies(world: Server, show: Opener, store: TokenStore) -> None:
    page = show(world.address, "/data/tales#frequency")
    top = by_id(page, "top-tokens").locator("tbody tr")
    expect(top).not_to_have_count(0)
    ids = store.tokens(0, store.total_tokens).tolist()
    most = max(set(ids), key=ids.count)
    expect(top.first.locator("td").nth(2)).to_have_text(f"{ids.count(most):,}")
    wait_until(page, "() => document.querySelector('[data-testid=chart-frequency] .plot')?.data")
    assert max(series(page, "frequency")[0]["y"]) == ids.count(most)
    by_id(page, "section-lengths").scroll_into_view_if_needed()
    wait_until(page, "() => document.querySelector('[data-testid=chart-lengths] .plot')?.data")
    assert sum(series(page, "lengths")[0]["y"]) == store.num_documents
