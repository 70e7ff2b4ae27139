"""Pictures of figures as SVG, in the light and in the dark. Takes values, knows no benchmark."""

import math
from xml.sax.saxutils import escape

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .faint { fill: #59636e; font-size: 12px }
.grid { stroke: #d1d9e0 } .range { stroke: #8b949e; stroke-width: 2 }
.ours { fill: #0969da; stroke: #0969da } .other { fill: #59636e; stroke: #59636e }
.third { fill: #bc4c00; stroke: #bc4c00 } .limit { fill: #8b949e; stroke: #8b949e }
text.ours, text.third, text.other { stroke: none } path { fill: none; stroke-width: 2 } path.ours, path.other, path.third { fill: none }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #3d444d } .range { stroke: #9198a1 }
.ours { fill: #4493f8; stroke: #4493f8 } .other { fill: #9198a1; stroke: #9198a1 }
.third { fill: #f0883e; stroke: #f0883e } .limit { fill: #656c76; stroke: #656c76 }
}
</style>"""


def dots(title, note, panels):
    """Panels of rows, one beneath the other: a dot at the median, a line over the range, on a scale
    of powers of ten. `panels`: (heading, unit, rows); a row: (label, kind, low, median, high)."""
    label, right, line = 250, 760, 24
    parts, y = [], 82
    for heading, unit, rows in panels:
        scale = Log([it[2] for it in rows] + [it[4] for it in rows], label, right)
        parts.append(_text(16, y, heading, "title"))
        top, y = y + 14, y + 32
        for value in scale.powers():
            x = scale(value)
            parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{y + line * len(rows) - 10}"/>')
            parts.append(_text(x, y + line * len(rows) + 6, _short(value), "faint", "middle"))
        parts.append(_text(right + 84, y + line * len(rows) + 6, unit, "faint", "end"))
        for name, kind, low, median, high in rows:
            parts.append(_text(label - 12, y + 4, name, kind if kind == "ours" else "", "end"))
            parts.append(f'<line class="range" x1="{scale(low):.1f}" x2="{scale(high):.1f}" y1="{y}" y2="{y}"/>')
            parts.append(f'<circle class="{kind}" cx="{scale(median):.1f}" cy="{y}" r="5"/>')
            parts.append(_text(right + 84, y + 4, f"{median:,.0f}", "faint", "end"))
            y += line
        y += 48
    return _picture(title, note, 860, y - 14, parts)


def lines(title, note, panels):
    """Small charts, two in a row, both axes in powers of ten. `panels`: (heading, unit, across,
    series); a series: (name, kind, [(x, y), …])."""
    width, height, gap_x, gap_y, left, top = 330, 170, 96, 86, 64, 96
    parts = []
    for at, (heading, unit, across, series) in enumerate(panels):
        x0, y0 = left + at % 2 * (width + gap_x), top + at // 2 * (height + gap_y)
        points = [it for _, _, line in series for it in line]
        horizontal = Log([x for x, _ in points], x0, x0 + width)
        vertical = Log([y for _, y in points], y0 + height, y0)
        parts.append(_text(x0 - 40, y0 - 18, f"{heading}, {unit}", "title"))
        for value in vertical.powers():
            y = vertical(value)
            parts.append(f'<line class="grid" x1="{x0}" x2="{x0 + width}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_text(x0 - 8, y + 4, _short(value), "faint", "end"))
        for value in sorted({x for x, _ in points}):
            parts.append(_text(horizontal(value), y0 + height + 18, _short(value), "faint", "middle"))
        parts.append(_text(x0 + width, y0 + height + 36, across, "faint", "end"))
        for name, kind, line in series:
            places = [(horizontal(x), vertical(y)) for x, y in line]
            path = " ".join(f"{'ML'[n > 0]}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(places))
            parts.append(f'<path class="{kind}" d="{path}"/>')
            parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
            x, y = places[-1]
            parts.append(_text(x, y - 9, name, kind, "end" if x > x0 + width / 2 else "start"))
    rows = (len(panels) + 1) // 2
    return _picture(title, note, left + 2 * width + gap_x + 30, top + rows * (height + gap_y) - 30, parts)


class Log:
    """Where a value is between two places, by its power of ten. Ends at whole powers."""

    def __init__(self, values, start, end):
        seen = [it for it in values if it > 0] or [1]
        self.low = math.floor(math.log10(min(seen)))
        self.high = max(math.ceil(math.log10(max(seen))), self.low + 1)
        self.start, self.end = start, end

    def __call__(self, value):
        # Nothing at all has no power of ten: it stands at the edge.
        power = math.log10(value) if value > 0 else self.low
        return self.start + (self.end - self.start) * (power - self.low) / (self.high - self.low)

    def powers(self):
        return [10.0**it for it in range(self.low, self.high + 1)]


def _picture(title, note, width, height, parts):
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(title)}</title>", STYLE, _text(16, 26, title, "title"), _text(16, 45, note, "faint")]
    return "\n".join([*head, *parts, "</svg>", ""])


def _text(x, y, text, kind="", anchor="start"):
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}{anchor}>{escape(text)}</text>'


def _short(value):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
