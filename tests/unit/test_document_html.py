"""HTML: what a reader of the page sees, and nothing else."""

from __future__ import annotations

import time

import pytest

from pipeline.engines.documents.html import read_html
from pipeline.engines.documents.sink import Refused
from pipeline.errors import FailureCode
from pipeline.types import WindowText
from tests.unit.documents import LIMITS, limits, outline


def read(source: str | bytes) -> WindowText:
    return read_html(source if isinstance(source, bytes) else source.encode(), LIMITS)


def body(source: str) -> list[str]:
    return outline(read(f"<html><body>{source}</body></html>"))


def test_headings_paragraphs_and_the_title() -> None:
    window = read(
        "<html><head><title> The\n page </title><style>p{}</style></head><body><h1>Big <em>news</em></h1>"
        "Loose text <a href=x>linked</a>,<br>next line<p>One  \n two</p><div>A<div>B</div>C</div><h6>Small</h6></body>"
    )
    assert window.title == "The page"
    assert outline(window) == [
        "h1: Big news",
        "p: Loose text linked,\nnext line",
        "p: One two",
        "p: A",
        "p: B",
        "p: C",
        "h6: Small",
    ]


def test_without_a_title_the_first_heading_is_it() -> None:
    assert read("<h2>First</h2><h1>Second</h1>").title == "First"


@pytest.mark.parametrize(
    "furniture",
    [
        "<script>var NOT=1</script>",
        "<style>.NOT{}</style>",
        "<nav>NOT</nav>",
        "<header>NOT</header>",
        "<footer>NOT</footer>",
        "<aside>NOT</aside>",
        "<template>NOT</template>",
        "<noscript>NOT</noscript>",
        "<select><option>NOT</option></select>",
        "<button>NOT</button>",
        "<svg><text>NOT</text></svg>",
        "<dialog>NOT</dialog>",
        "<p hidden>NOT</p>",
        "<p style='color:red; DISPLAY : none'>NOT</p>",
        "<p style='visibility:hidden'>NOT</p>",
        "<p aria-hidden='true'>NOT</p>",
        "<div role='navigation'>NOT</div>",
        "<div hidden><p>NOT</p><table><tr><td>NOT<td>NOT</table></div>",
        "<!-- NOT -->",
    ],
)
def test_furniture_and_hidden_text_is_no_content(furniture: str) -> None:
    assert body(f"<p>before</p>{furniture}<p>after</p>") == ["p: before", "p: after"]


def test_what_only_looks_like_furniture_stays() -> None:
    source = "<main><article><header><h1>Title</h1></header><p aria-hidden='false'>text</p></article></main>"
    assert body(source + "<p style='display:block'>shown</p>") == ["h1: Title", "p: text", "p: shown"]


def test_a_table_in_a_list_item_survives_and_numbering_goes_on() -> None:
    source = "<ol><li>one</li><li>two<table><tr><th>H</th></tr><tr><td>V</td></tr></table></li><li>three</li></ol>"
    assert body(source) == ["li0 1.: one", "li0 2.: two", "table 2x1: *H / V", "li0 3.: three"]


def test_list_markers_are_what_a_browser_shows() -> None:
    source = (
        "<ol start=9 type=a><li>nine<ul><li>deep<ol type=I><li>x<li>y</ol></ul><li value=27>set<li>next</ol>"
        "<ol reversed><li>three<li>two<li>one</ol><ol type=i start=1994><li>roman</ol>"
    )
    assert body(source) == [
        "li0 i.: nine",
        "li1 -: deep",
        "li2 I.: x",
        "li2 II.: y",
        "li0 aa.: set",
        "li0 ab.: next",
        "li0 3.: three",
        "li0 2.: two",
        "li0 1.: one",
        "li0 mcmxciv.: roman",
    ]


def test_paragraphs_of_an_item_belong_to_it_until_something_else_stands_in_it() -> None:
    source = "<ul><li><p>first</p><p>second</p><pre>code</pre><p>third</p></li></ul>"
    assert body(source) == ["li0 -: first\nsecond", "code: code", "p: third"]


def test_spans_and_headers_of_a_table() -> None:
    source = (
        "<table><caption>Prices</caption>"
        "<thead><tr><td rowspan=2>Item<td colspan=2>Price</tr><tr><td>net<td>gross</thead>"
        "<tbody><tr><th>Pump<td>100<td rowspan=2>any</tr><tr><td>Valve<td>20</tbody></table>"
    )
    assert body(source) == [
        "caption: Prices",
        "table 4x3: *Item<2x1> | *Price<1x2> / *net | *gross / *Pump | 100 | any<2x1> / Valve | 20",
    ]


def test_claimed_spans_are_cut_to_the_table() -> None:
    assert body("<table><tr><td colspan=100000000 rowspan=100000000>a</table><p>x") == ["p: a", "p: x"]
    spanned = "<table><tr><td colspan=99 rowspan=65534>a<td>b<tr><td>c</table>"
    assert body(spanned) == ["table 2x100: a<2x99> | b / c"]
    with pytest.raises(Refused) as caught:
        read("<table>" + "<tr><td colspan=1000 rowspan=1000>a</td><td>b</td></tr>" * 200)
    assert caught.value.failure.code is FailureCode.TOO_LARGE


def test_cells_keep_lines_and_lists_apart_and_nested_tables_as_text() -> None:
    nested = "<ul><li>x<li>y</ul><table><tr><td>in<td>ner</table>"
    source = f"<table><tr><th>a<th>b<tr><td>one<br>two<p>three</p><td>{nested}</table>"
    assert body(source) == ["table 2x2: *a | *b / one\ntwo\nthree | x\ny\nin ner"]


def test_a_table_that_only_arranges_the_page_is_running_text() -> None:
    inner = "<table><tr><th>k<th>v<tr><td>1<td>2</table>"
    assert body(f"<table><tr><td>{inner}</table>") == ["table 2x2: *k | *v / 1 | 2"]
    assert body(f"<table><tr><td><h2>Menu</h2><td>{inner}</table>") == ["h2: Menu", "table 2x2: *k | *v / 1 | 2"]
    assert body("<table role=presentation><tr><td>left<td>right</table>") == ["p: left", "p: right"]


def test_code_keeps_its_space_and_language() -> None:
    source = '<pre class="x"><code class="language-python">def f():\n    return <b>1</b></code></pre><p><code>x</code>'
    assert body(source) == ["code python: def f():\n    return 1", "p: x"]


def test_pictures_give_their_description_and_formulas_their_source() -> None:
    source = '<p><img alt="A pump" src=x> and <img alt="" src=y><math alttext="x^2"><mi>x</mi></math></p>'
    assert body(source) == ["p: A pump and x^2"]
    assert body("<figure><img src=x><figcaption>Figure 1: The pump</figcaption></figure>") == [
        "caption: Figure 1: The pump"
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<meta charset="iso-8859-1"><p>Größe – 第十一号'.encode(), "Größe – 第十一号"),
        ('<meta charset="windows-1251"><p>Съешь ещё'.encode("cp1251"), "Съешь ещё"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>Съешь'.encode("koi8-r"), "Съешь"),
        ('<?xml version="1.0" encoding="windows-1251"?><p>Съешь'.encode("cp1251"), "Съешь"),
        ("<p>Größe".encode("utf-16"), "Größe"),
        (b"\xef\xbb\xbf<p>" + "Größe".encode(), "Größe"),
        ('<meta charset="iso-8859-1"><p>5 €'.encode("cp1252"), "5 €"),
        ('<meta charset="nonsense"><p>Größe'.encode("cp1252"), "Größe"),
    ],
)
def test_charsets(source: bytes, expected: str) -> None:
    assert outline(read(source)) == [f"p: {expected}"]


def test_nesting_too_deep_is_refused_before_it_is_parsed() -> None:
    began = time.process_time()
    with pytest.raises(Refused) as caught:
        read("<div>" * 100_000 + "x")
    assert caught.value.failure.code is FailureCode.MALFORMED
    assert time.process_time() - began < 1
    assert body("<div>" * 900 + "x") == ["p: x"]


def test_formatting_that_is_never_closed_is_no_nesting() -> None:
    assert body("<b>" * 5_000 + "x") == ["p: x"]


def test_characters_no_store_takes_are_gone() -> None:
    assert body("<p>a&#0;b\u202ec</p><p>d\x01e</p>") == ["p: a\ufffdbc", "p: de"]


def test_reading_stops_after_the_text_limit() -> None:
    window = read_html(b"<p>ten bytes." * 100, limits(max_text_bytes=95))
    assert len(window.blocks) == 10
