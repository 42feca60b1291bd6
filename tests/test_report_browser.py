"""The report of a demo-size audit in a real browser: it fits every width, fetches nothing, and runs nothing hostile."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import secondorder as so
from secondorder.acquire import SimulatedJudge, messages_key, read_ledger

from .conftest import need

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WIDTHS = (1280, 768, 390)
SCRIPT = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
LONG_LINE = "z" * 2**20


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's audit, two of its items hostile in every text that they have, and so is the judge on them."""
    folder = tmp_path_factory.mktemp("audit")
    shipped = files("secondorder") / "_shipped_data" / "demo"
    items = [json.loads(line) for line in (shipped / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    for item in items:
        item["topic"] = SCRIPT if item["topic"] == "facts" else item["topic"]
    items[0] |= {"id": SCRIPT, "instruction": SCRIPT}
    items[1] |= {"id": "long" * 1000, "instruction": LONG_LINE}
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    spec = (shipped / "audit.toml").read_text(encoding="utf-8")
    (folder / "audit.toml").write_text(spec, encoding="utf-8")
    plain, attack = {"A": 0.6, "B": 0.3, "TIE": 0.1}, {"A": 0.4, "B": 0.3, SCRIPT: 0.2, LONG_LINE: 0.1}
    hostile = {items[0]["id"], items[1]["id"]}
    laws = {
        messages_key(json.loads(call.request)["messages"]): attack if call.item in hostile else plain
        for call in so.plan_audit(folder).calls
        if call.repeat == 0
    }
    with SimulatedJudge(laws) as judge:
        url = so.load_audit(folder).spec.judges["simulated"].base_url
        spec = spec.replace(url, judge.base_url).replace("[judges.simulated", f"[judges.{json.dumps(SCRIPT)}")
        (folder / "audit.toml").write_text(spec, encoding="utf-8")
        run = so.run_audit(folder)
    with read_ledger(run.folder / "ledger.sqlite") as ledger:
        records = [record for record in ledger.outcomes(bodies=True) if record.call.item in hostile]
        assert {record.result for record in records} == {"completed"}
        assert max(len(record.call.request) for record in records) > 2**20
        assert max(len(record.response or b"") for record in records) > 2**20
        assert ledger.n_calls == 2400
    return run.report


class Opened(NamedTuple):
    page: Any
    said: list[str]
    requested: list[str]


@pytest.fixture(scope="module")
def browser(report: Path) -> Iterator[Any]:
    found = shutil.which("chromium")
    need("browser", bool(found and find_spec("playwright")), "install Chromium, and playwright with pip")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(params=WIDTHS, ids=str)
def opened(request: pytest.FixtureRequest, browser: Any, report: Path) -> Iterator[Opened]:
    page = browser.new_page(viewport={"width": request.param, "height": 900})
    said: list[str] = []
    requested: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda sent: requested.append(sent.url))
    page.goto(report.as_uri())
    yield Opened(page, said, requested)
    page.close()


# Elements that stick out of the page, boxes that scroll for themselves and what is in them apart.
STICKING_OUT = """() => [...document.querySelectorAll('body *')]
    .filter(e => !e.closest('.scroll') || e.classList.contains('scroll'))
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map(e => e.outerHTML.slice(0, 80))"""
PAGE_OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_nothing_sticks_out_of_the_page(opened: Opened) -> None:
    for state in ("closed", "open"):
        if state == "open":
            opened.page.evaluate("() => document.querySelectorAll('details').forEach(e => e.open = true)")
        assert opened.page.evaluate(PAGE_OVERFLOW) == 0, state
        assert opened.page.evaluate(STICKING_OUT) == [], state


def test_what_goes_on_beyond_the_edge_shows_it(opened: Opened) -> None:
    from PIL import Image

    box = opened.page.query_selector("figure .scroll")
    hidden = box.evaluate("e => e.scrollWidth - e.clientWidth")
    with Image.open(io.BytesIO(box.screenshot())) as picture:
        edge = picture.convert("RGB").getpixel((picture.width - 4, 2))
    assert (min(edge) < 240) == (hidden > 0), edge


def test_sentences_are_no_towers_of_words(opened: Opened) -> None:
    lines = "e => [...e.querySelectorAll('td.w')].map(c => c.getClientRects()[0]?.height ?? 0)"
    heights = opened.page.eval_on_selector("#errors", lines)
    assert len(heights) >= 2
    assert max(heights) < 4 * 1.4 * 16 * 0.875


def test_nothing_runs_nothing_is_fetched_and_nothing_is_complained_of(opened: Opened, report: Path) -> None:
    opened.page.wait_for_load_state("networkidle")
    assert opened.requested == [report.as_uri()]
    assert opened.said == []
    assert opened.page.title() == "demo – judge audit"
    assert opened.page.locator("script, img, iframe, object, link").count() == 0
    # The hostile texts are there, as text: the name of the judge, and what it said.
    assert SCRIPT[:70] in opened.page.inner_text("#answer")
    said = opened.page.locator("#outcomes").inner_text()
    assert SCRIPT in said
    assert "z" * 200 + "…" in said
    assert report.stat().st_size < 500_000


def test_every_entry_of_the_contents_leads_to_its_section(opened: Opened) -> None:
    links = opened.page.locator("nav a")
    anchors = [link.get_attribute("href") for link in links.all()]
    assert {
        *("#answer", "#asked", "#components", "#prefixes", "#strata", "#items", "#gold", "#outcomes", "#sensitivity"),
        *("#integrity", "#provenance"),
    } <= set(anchors)
    assert len(set(anchors)) == len(anchors)
    for link, anchor in zip(links.all(), anchors, strict=True):
        link.click()
        assert opened.page.evaluate("location.hash") == anchor
        assert opened.page.locator(f"{anchor} > h2").bounding_box()["y"] < 900


def test_text_is_dark_on_white_and_large_enough(opened: Opened) -> None:
    opened.page.emulate_media(color_scheme="dark")
    ground, ink = opened.page.evaluate(
        "() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color] }"
    )
    assert ground == "rgb(255, 255, 255)"
    assert max(map(int, ink[4:-1].split(","))) < 64
    smallest = "s => Math.min(...[...document.querySelectorAll(s)].map(e => parseFloat(getComputedStyle(e).fontSize)))"
    assert opened.page.evaluate(smallest, "p, td, th, small, a") >= 12
    # Figures scale with the page, and their text with them.
    heights = "() => Math.min(...[...document.querySelectorAll('svg text')].map(e => e.getBoundingClientRect().height))"
    assert opened.page.evaluate(heights) >= 10


def test_paper_shows_what_is_folded(browser: Any, report: Path) -> None:
    page = browser.new_page(viewport={"width": 680, "height": 1008})  # A4 less its margins
    page.goto(report.as_uri())
    row = page.locator("details tbody tr").first
    assert not row.is_visible()
    page.emulate_media(media="print")
    assert row.is_visible()
    assert not page.locator("nav").is_visible()
    assert page.evaluate(PAGE_OVERFLOW) == 0
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
