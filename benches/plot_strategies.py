#!/usr/bin/env python3
"""Strategies of copying between host and device: what was measured, as bars, beside what was predicted, as marks.

    benches/plot_strategies.py OUT FILE.tsv...

Reads what `horus-strategies --tsv` writes, in any order, and writes OUT-SIZE-PIXELS.svg, as Figures 5.9 to 5.12 of the thesis: for
each program a group of bars, one for each strategy. Times are told in parts of those of the strategy Explicit, whose
milliseconds stand below the program. The same files give the same bytes. Needs nothing but Python.
"""
import csv
import sys
from xml.sax.saxutils import escape

FIELDS = ("program", "pixels", "size", "strategy", "measured_ms", "low_ms", "high_ms", "predicted_ms", "runs")
# Of bars in the order of strategies; light, dark.
COLOURS = (
    ("#57606a", "#8b949e"), ("#9cc7ff", "#1f4f8f"), ("#6cb0ff", "#2f6fc0"), ("#2f81f7", "#4f97f0"), ("#0a4fb0", "#8fc0ff"),
    ("#bc4c00", "#e8853d"), ("#1a7f37", "#3fb950"), ("#8250df", "#b083f0"), ("#bf8700", "#e3b341"),
)
# Lengths in pixels. Bars that are longer than MOST times Explicit are cut, and say how long they are.
BAR, GAP, AXIS, TOP, HEIGHT, BOTTOM, MOST = 13, 20, 46, 66, 260, 46, 1.6


def fail(why):
    sys.exit(f"error: {why}")


def read(paths):
    """The rows by (size, pixels), program and strategy, in the order of the files."""
    pictures = {}
    for path in paths:
        try:
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file, delimiter="\t"))
        except OSError as error:
            fail(error)
        for number, row in enumerate(rows, 2):
            if tuple(row) != FIELDS or None in row.values():
                fail(f"{path}, line {number}: the columns are not those of horus-strategies")
            try:
                values = {key: float(row[key]) for key in FIELDS[4:]}
                size = int(row["size"])
            except ValueError as error:
                fail(f"{path}, line {number}: {error}")
            if not all(0 < value < float("inf") for value in values.values()):
                fail(f"{path}, line {number}: a time that cannot be")
            programs = pictures.setdefault((size, row["pixels"]), {})
            programs.setdefault(row["program"], {})[row["strategy"]] = values
    if not pictures:
        fail("there are no rows")
    return pictures


def style(strategies):
    rules = ["text{font:12px sans-serif;fill:#1f2328}", ".title{font-size:14px;font-weight:bold}", ".small{font-size:10px}"]
    rules += [".back{fill:#fff}", ".line{stroke:#d1d9e0}", ".mark{stroke:#1f2328;stroke-width:2}", ".spread{stroke:#1f2328}"]
    rules += [f".s{i}{{fill:{COLOURS[i % len(COLOURS)][0]}}}" for i in range(len(strategies))]
    dark = ["text{fill:#e6edf3}", ".back{fill:#0d1117}", ".line{stroke:#3d444d}"]
    dark += [".mark{stroke:#e6edf3;stroke-width:2}", ".spread{stroke:#e6edf3}"]
    dark += [f".s{i}{{fill:{COLOURS[i % len(COLOURS)][1]}}}" for i in range(len(strategies))]
    return "".join(rules) + "@media(prefers-color-scheme:dark){" + "".join(dark) + "}"


def draw(size, pixels, programs):
    """The picture of one size and type of pixels."""
    strategies = []
    for times in programs.values():
        strategies += [s for s in times if s not in strategies]
    group = BAR * len(strategies)
    legend = sum(24 + 7 * len(s) for s in strategies) + 150
    width = max(AXIS + (group + GAP) * len(programs) + GAP, AXIS + legend)
    height = TOP + HEIGHT + BOTTOM
    base = TOP + HEIGHT

    def y(share):
        return base - HEIGHT * min(share, MOST) / MOST

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">']
    out.append(f"<style>{style(strategies)}</style>")
    out.append(f'<rect class="back" width="{width}" height="{height}"/>')
    title = f"Copying strategies, {size} x {size}, {pixels}: time in parts of Explicit"
    out.append(f'<text class="title" x="{AXIS}" y="20">{escape(title)}</text>')
    x = AXIS
    for i, strategy in enumerate(strategies):
        out.append(f'<rect class="s{i}" x="{x}" y="32" width="12" height="12"/>')
        out.append(f'<text x="{x + 16}" y="42">{escape(strategy)}</text>')
        x += 24 + 7 * len(strategy)
    out.append(f'<line class="mark" x1="{x}" y1="38" x2="{x + 14}" y2="38"/><text x="{x + 18}" y="42">predicted</text>')
    for step in range(9):
        share = MOST * step / 8
        out.append(f'<line class="line" x1="{AXIS}" y1="{y(share):.1f}" x2="{width}" y2="{y(share):.1f}"/>')
        out.append(f'<text x="{AXIS - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.1f}</text>')
    x = AXIS + GAP
    for program, times in programs.items():
        if "explicit" not in times:
            fail(f"{program} {size} {pixels}: the strategy Explicit is not there")
        unit = times["explicit"]["measured_ms"]
        for i, strategy in enumerate(strategies):
            if strategy not in times:
                continue
            t = times[strategy]
            left, share = x + BAR * i, t["measured_ms"] / unit
            top = y(share)
            out.append(
                f'<rect class="s{i}" x="{left}" y="{top:.1f}" width="{BAR - 2}" height="{base - top:.1f}">'
                f'<title>{escape(program)}, {escape(strategy)}: {t["measured_ms"]:.3f} ms measured '
                f'({t["low_ms"]:.3f} to {t["high_ms"]:.3f}), {t["predicted_ms"]:.3f} predicted</title></rect>'
            )
            middle = left + (BAR - 2) / 2
            low, high = y(t["low_ms"] / unit), y(t["high_ms"] / unit)
            out.append(f'<line class="spread" x1="{middle}" y1="{low:.1f}" x2="{middle}" y2="{high:.1f}"/>')
            mark = y(t["predicted_ms"] / unit)
            out.append(f'<line class="mark" x1="{left - 1}" y1="{mark:.1f}" x2="{left + BAR - 1}" y2="{mark:.1f}"/>')
            if share > MOST:
                out.append(f'<text class="small" x="{middle}" y="{TOP - 4}" text-anchor="middle">{share:.1f}</text>')
        centre = x + group / 2
        out.append(f'<text x="{centre}" y="{base + 16}" text-anchor="middle">{escape(program)}</text>')
        out.append(f'<text class="small" x="{centre}" y="{base + 30}" text-anchor="middle">{unit:.3g} ms</text>')
        x += group + GAP
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    for (size, pixels), programs in sorted(read(arguments[1:]).items()):
        path = f"{arguments[0]}-{size}-{pixels}.svg"
        with open(path, "w", encoding="utf-8") as file:
            file.write(draw(size, pixels, programs))
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
