"""Bar charts of results as SVG: readable on light and dark pages, with all values as text."""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from benchmarks.model import Row
from benchmarks.report import number, outcome

_WIDTH: Final = 920
_BARS_LEFT: Final = 310
_BARS_WIDTH: Final = 300
_LINE: Final = 22
_TITLE: Final = 34
_BAR: Final = 14
_MARGIN: Final = 12
_MORE_IS_BETTER: Final = {"calls/s", "replies/s", "% of capacity"}
_STYLE: Final = """\
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title, .own { font-weight: 600 }
rect { fill: #8c959f }
rect.own { fill: #0969da }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect { fill: #6e7681 } rect.own { fill: #4493f8 } }
</style>"""


def bar_chart(title: str, rows: Sequence[Row]) -> str:
    """Draw one panel of horizontal bars per metric. Bars within a panel have the same scale, which starts at zero."""
    panels: dict[str, list[Row]] = {}
    for row in rows:
        panels.setdefault(row.metric, []).append(row)
    lines: list[str] = []
    top = _MARGIN
    for panel in panels.values():
        lines += _panel(panel, top)
        top += _TITLE + _LINE * len(panel)
    height = top + _MARGIN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    return "\n".join([f'{head} role="img">', f"<title>{escape(title)}</title>", _STYLE, *lines, "</svg>", ""])


def _panel(rows: Sequence[Row], top: int) -> Iterator[str]:
    unit = rows[0].unit
    better = "more is better" if unit in _MORE_IS_BETTER else "less is better"
    yield f'<text class="title" x="0" y="{top + 18}">{escape(f"{rows[0].metric}, {unit}")} ({better})</text>'
    largest = max((row.value for row in rows if row.value is not None), default=0.0) or 1.0
    for line, row in enumerate(rows):
        yield from _bar(row, top + _TITLE + _LINE * line, largest)


def _bar(row: Row, top: int, largest: float) -> Iterator[str]:
    """Draw a label, a bar and its value. The bars and labels of Axolotl are set in another color and weight."""
    own = ' class="own"' if row.contender.startswith("axolotl") else ""
    width = 0.0 if row.value is None else max(1.0, row.value / largest * _BARS_WIDTH)
    yield f'<text{own} x="0" y="{top + 11}">{escape(row.contender)}</text>'
    yield f'<rect{own} x="{_BARS_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR}"/>'
    yield f'<text x="{_BARS_LEFT + width + 8:.1f}" y="{top + 11}">{escape(_value(row))}</text>'


def _value(row: Row) -> str:
    if row.value is None:
        return outcome(row)
    ratio = "" if row.ratio is None else f", {number(row.ratio)} × {row.baseline}"
    target = f", {outcome(row)}" if row.verdict else ""
    return f"{number(row.value)}{ratio}{target}"
