#!/usr/bin/env python3
"""When the steps of a plan ran, a row for each queue, above when they were predicted to run.

    benches/plot_timeline.py OUT.svg TRACE.json [TITLE]

Reads what `--trace FILE` of the programs and of `horus-bench` writes and draws the last plan of rank 0. Times are milliseconds from the
beginning of that plan. The same file gives the same bytes. Needs nothing but Python.
"""
import json
import sys
from xml.sax.saxutils import escape

PREDICTED = 1_000_000
QUEUES = ("host", "upload", "compute", "download", "network")
# Light, dark.
COLOURS = {
    "host": ("#8c959f", "#6e7681"), "upload": ("#2f81f7", "#4f97f0"), "compute": ("#bc4c00", "#e8853d"),
    "download": ("#1a7f37", "#3fb950"), "network": ("#8250df", "#b083f0"),
}
LEFT, ROW, TOP, WIDTH = 90, 22, 44, 1000


def fail(why):
    sys.exit(f"error: {why}")


def last_plan(path):
    """The spans of the last plan of rank 0, measured and predicted, and when it began."""
    try:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{path}: {error}")
    spans = [e for e in events if e.get("ph") == "X"]
    # The predictions for a plan precede its steps.
    plans = [i for i, e in enumerate(spans) if e["pid"] == PREDICTED and (i == 0 or spans[i - 1]["pid"] != PREDICTED)]
    if not plans:
        fail(f"{path}: no plan is predicted")
    mine = spans[plans[-1]:]
    predicted = [e for e in mine if e["pid"] == PREDICTED]
    begin = min(e["ts"] for e in predicted)
    measured = [e for e in spans if e["pid"] == 0 and e["ts"] + e["dur"] > begin]
    return measured, predicted, begin


def rows_of(spans):
    return [q for q in range(len(QUEUES)) if any(e["tid"] == q for e in spans)]


def draw(measured, predicted, begin, title):
    end = max((e["ts"] + e["dur"] - begin) / 1e3 for e in measured + predicted)
    scale = (WIDTH - LEFT - 20) / end
    parts = [("measured", measured), ("predicted", predicted)]
    height = TOP + sum(ROW * (len(rows_of(spans)) + 1) for _, spans in parts) + 40
    light = [f".{q}{{fill:{c[0]}}}" for q, c in COLOURS.items()]
    dark = [f".{q}{{fill:{c[1]}}}" for q, c in COLOURS.items()]
    style = "text{font:12px sans-serif;fill:#1f2328}.title{font-size:14px;font-weight:bold}.back{fill:#fff}.line{stroke:#d1d9e0}"
    style += ".host,.upload,.compute,.download,.network{stroke:#fff;stroke-width:.5}" + "".join(light)
    style += "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117}.line{stroke:#3d444d}" + "".join(dark) + "}"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">']
    out += [f"<style>{style}</style>", f'<rect class="back" width="{WIDTH}" height="{height}"/>']
    out.append(f'<text class="title" x="10" y="20">{escape(title)}</text>')
    bottom = height - 30
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1e9) if end / s <= 12)
    tick = 0
    while tick * step <= end:
        x = LEFT + tick * step * scale
        out.append(f'<line class="line" x1="{x:.1f}" y1="{TOP - 10}" x2="{x:.1f}" y2="{bottom}"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick * step:g}</text>')
        tick += 1
    out.append(f'<text x="{WIDTH - 10}" y="{bottom + 28}" text-anchor="end">ms</text>')
    y = TOP
    for name, spans in parts:
        took = max((e["ts"] + e["dur"] - begin) / 1e3 for e in spans)
        out.append(f'<text x="10" y="{y + 12}">{name}, {took:.2f} ms</text>')
        y += ROW
        for queue in rows_of(spans):
            q = QUEUES[queue]
            out.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{q}</text>')
            for e in spans:
                if e["tid"] != queue:
                    continue
                start = max(e["ts"] - begin, 0) / 1e3
                width = max((e["ts"] + e["dur"] - begin) / 1e3 - start, 0) * scale
                about = f'{e["name"]}: {start:.3f} to {start + width / scale:.3f} ms'
                out.append(
                    f'<rect class="{q}" x="{LEFT + start * scale:.2f}" y="{y}" width="{max(width, 0.6):.2f}" height="{ROW - 4}">'
                    f"<title>{escape(about)}</title></rect>"
                )
            y += ROW
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main(arguments):
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    measured, predicted, begin = last_plan(arguments[1])
    title = arguments[2] if len(arguments) == 3 else arguments[1]
    with open(arguments[0], "w", encoding="utf-8") as file:
        file.write(draw(measured, predicted, begin, title))


if __name__ == "__main__":
    main(sys.argv[1:])
