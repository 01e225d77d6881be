#!/usr/bin/env python3
"""Times of naive, lazy and fused runs on 1, 2, 4 ... ranks: a table, and a plot for each size of image.

    benches/plot.py OUT FILE.json...

Reads results of `horus-bench --json`, in any order, and writes OUT.md and OUT-SIZE.svg. The same files give the same bytes.
"""
import json
import math
import os
import sys

MODES = ("naive", "lazy", "fused")
NAMES = {"convrot": "ConvRot", "convuv": "ConvUV", "conv2d": "Conv2D"}
# Bars lie side by side: by ranks, then by mode. Lengths in pixels.
BAR, GAP, AXIS, TOP, HEIGHT, BOTTOM = 27, 14, 62, 78, 260, 34
# The background comes along: a viewer's theme need not be that of the page around the picture.
STYLE = """text{font:12px sans-serif;fill:#1f2328}.title{font-size:14px;font-weight:bold}
.number{font-size:10px;stroke:#fff;stroke-width:3px;paint-order:stroke}
.back{fill:#fff}.line{stroke:#d1d9e0}.naive{fill:#bc4c00}.lazy{fill:#2f81f7}.fused{fill:#1a7f37}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.number{stroke:#0d1117}.back{fill:#0d1117}.line{stroke:#3d444d}
.naive{fill:#e8853d}.lazy{fill:#6cb0ff}.fused{fill:#3fb950}}"""


def fail(why):
    sys.exit(f"error: {why}")


def read(paths):
    """The measurements, by (size, detector, ranks, mode), and a description of their conditions."""
    results, how, source = {}, set(), {}
    for path in paths:
        try:
            with open(path, encoding="utf-8") as f:
                data = json.load(f)
            for r in data["results"]:
                key = r["size"], r["op"], r["ranks"], r["mode"]
                if key in results:
                    fail(f"{path} and {source[key]} both have {r['op']}, size {r['size']}, {r['mode']} on {ranks(r['ranks'])}")
                if r["mode"] not in MODES or not r["median_ms"] > 0 or r["copies"] < 0 or r["exchanges"] < 0:
                    fail(f"{path} has a result that makes no sense: {r}")
                results[key], source[key] = r, path
                how.add((data["device"], "from and to pixels on the host" if r["from_host"] else "images on the device"))
        except (OSError, ValueError) as e:
            fail(f"cannot read {path}: {e}")
        except (KeyError, TypeError) as e:
            fail(f"{path} is not of `horus-bench --json`: {e!r}")
    if len(how) != 1:
        fail("nothing was measured" if not how else f"these cannot be compared: {sorted(how)}")
    device, pixels = how.pop()
    return results, f"{device} on each rank, f32, {pixels}, medians"


def number(ms):
    """At least three digits that count, and at most three behind the point."""
    digits = 2 - math.floor(math.log10(float(f"{ms:.2e}")))
    return f"{ms:.{max(0, min(3, digits))}f}"


def ranks(n):
    return f"{n} rank" + "s" * (n > 1)


def sorted_by(results, part, size=None):
    """All values of one part of the keys, detectors and modes in the usual order."""
    order = list(NAMES) + list(MODES)
    found = {key[part] for key in results if size in (None, key[0])}
    return sorted(found, key=lambda v: (order.index(v) if v in order else -1, v))


def table(results, size):
    lines = ["| detector | size | ranks | mode | ms | speed-up over naive on 1 | copies | exchanges |", "| --- " * 8 + "|"]
    for op in sorted_by(results, 1, size):
        base = results.get((size, op, 1, "naive"))
        for n in sorted_by(results, 2, size):
            for mode in MODES:
                r = results.get((size, op, n, mode))
                if r:
                    faster = number(base["median_ms"] / r["median_ms"]) if base else ""
                    cells = [NAMES.get(op, op), size, n, mode, number(r["median_ms"]), faster, r["copies"], r["exchanges"]]
                    lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def text(x, y, words, anchor="middle", kind=""):
    kind = f' class="{kind}"' if kind else ""
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{kind}>{words}</text>'


def plot(results, size, how):
    """Bars of times on a logarithmic axis, a panel for each detector."""
    ops, all_ranks = sorted_by(results, 1, size), sorted_by(results, 2, size)
    modes = [m for m in MODES if m in sorted_by(results, 3, size)]
    times = [r["median_ms"] for key, r in results.items() if key[0] == size]
    # Whole decades, and room for the shortest bar.
    low, high = math.floor(math.log10(min(times) / 1.5)), math.ceil(math.log10(max(times)))
    y = lambda ms: TOP + HEIGHT * (high - math.log10(ms)) / (high - low)
    group = len(modes) * BAR + GAP
    panel = len(all_ranks) * group + 2 * GAP
    width, bottom = max(AXIS + len(ops) * panel, 600), TOP + HEIGHT
    about = f"{size}x{size}: milliseconds of one run by mode and number of ranks"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + BOTTOM}" width="{width}" role="img">',
        f'<title>{about}</title><style>{STYLE}</style><rect class="back" width="100%" height="100%"/>',
        text(12, 20, f"{size}x{size}, ms", "start", "title"),
        text(12, 38, how, "start", "number"),
    ]
    for i, mode in enumerate(modes):
        x = width - 66 * (len(modes) - i)
        out += [f'<rect class="{mode}" x="{x}" y="10" width="12" height="12"/>', text(x + 17, 20, mode, "start")]
    for decade in range(low, high + 1):
        at = y(10**decade)
        out += [f'<path class="line" d="M{AXIS - 6} {at:g}H{width - 8}"/>', text(AXIS - 10, at + 4, f"{10.0**decade:g}", "end")]
    for i, op in enumerate(ops):
        left = AXIS + i * panel + GAP
        out.append(text(left + (panel - 2 * GAP) / 2, TOP - 18, NAMES.get(op, op), kind="title"))
        for j, n in enumerate(all_ranks):
            start = left + j * group + GAP / 2
            out.append(text(start + len(modes) * BAR / 2, bottom + 20, ranks(n)))
            for k, mode in enumerate(modes):
                if r := results.get((size, op, n, mode)):
                    x, at = start + k * BAR, y(r["median_ms"])
                    out.append(f'<rect class="{mode}" x="{x + 1:g}" y="{at:.1f}" width="{BAR - 2}" height="{bottom - at:.1f}"/>')
                    out.append(text(x + BAR / 2, round(at - 4, 1), number(r["median_ms"]), kind="number"))
    return "\n".join(out) + "\n</svg>\n"


def main(out, paths):
    results, how = read(paths)
    parts = [f"# Naive, lazy, fused\n\n{how}. Copies between host and device, exchanges between ranks, of one run.\n"]
    for size in sorted_by(results, 0):
        with open(f"{out}-{size}.svg", "w", encoding="utf-8") as f:
            f.write(plot(results, size, how))
        parts.append(f"## {size}x{size}\n![times]({os.path.basename(out)}-{size}.svg)\n\n{table(results, size)}")
    with open(f"{out}.md", "w", encoding="utf-8") as f:
        f.write("\n".join(parts))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        fail("usage: plot.py OUT FILE.json...")
    main(sys.argv[1], sys.argv[2:])
