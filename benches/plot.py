#!/usr/bin/env python3
"""Tables and plots of what the benchmarks write.

    benches/plot.py scaling OUT FILE.json...      naive, lazy and fused on 1, 2, 4 ... ranks, of `horus-bench --json`:
                                                  OUT.md and OUT-SIZE.svg
    benches/plot.py strategies OUT FILE.tsv...    strategies of copying, measured (bars) and predicted (marks), in parts of
                                                  the strategy Explicit, of `horus-strategies --tsv`: OUT-SIZE-PIXELS.svg
    benches/plot.py timeline OUT.svg TRACE.json   steps of the last plan of rank 0, a row for each queue, of `--trace FILE`
                                                  of the programs and of `horus-bench`

Plots need matplotlib; without it, only tables are written. The same files give the same bytes.
"""
import csv
import json
import math
import os
import sys

try:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "horus", "svg.fonttype": "none", "axes.axisbelow": True, "axes.grid": True})
    from matplotlib import pyplot
except ImportError:
    pyplot = None

MODES = ("naive", "lazy", "fused")
NAMES = {"convrot": "ConvRot", "convuv": "ConvUV", "conv2d": "Conv2D"}
FIELDS = ("program", "pixels", "size", "strategy", "measured_ms", "low_ms", "high_ms", "predicted_ms", "runs")
QUEUES = ("host", "upload", "compute", "download", "network")
PREDICTED = 1_000_000  # the process of predictions in a trace


def fail(why):
    sys.exit(f"error: {why}")


def save(figure, path):
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    print(path)


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        fail(f"cannot read {path}: {error}")


def read_scaling(paths):
    """The measurements, by (size, detector, ranks, mode), and a description of their conditions."""
    results, how, source = {}, set(), {}
    for path in paths:
        data = read_json(path)
        try:
            for r in data["results"]:
                key = r["size"], r["op"], r["ranks"], r["mode"]
                if key in results:
                    fail(f"{path} and {source[key]} both have {r['op']}, size {r['size']}, {r['mode']} on {ranks(r['ranks'])}")
                if r["mode"] not in MODES or not r["median_ms"] > 0 or r["copies"] < 0 or r["exchanges"] < 0:
                    fail(f"{path} has a result that makes no sense: {r}")
                results[key], source[key] = r, path
                how.add((data["device"], "from and to pixels on the host" if r["from_host"] else "images on the device"))
        except (KeyError, TypeError) as error:
            fail(f"{path} is not of `horus-bench --json`: {error!r}")
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


def scaling(out, *paths):
    results, how = read_scaling(paths)
    parts = [f"# Naive, lazy, fused\n\n{how}. Copies between host and device, exchanges between ranks, of one run.\n"]
    for size in sorted_by(results, 0):
        parts.append(f"## {size}x{size}\n![times]({os.path.basename(out)}-{size}.svg)\n\n{table(results, size)}")
        if pyplot:
            ops, modes = sorted_by(results, 1, size), [m for m in MODES if m in sorted_by(results, 3, size)]
            figure, panels = pyplot.subplots(1, len(ops), sharey=True, squeeze=False, figsize=(4 * len(ops), 4), layout="constrained")
            figure.suptitle(f"{size}x{size}, ms: {how}")
            for op, panel in zip(ops, panels[0]):
                of_ranks = sorted_by(results, 2, size)
                for i, mode in enumerate(modes):
                    found = [(k, results[size, op, n, mode]) for k, n in enumerate(of_ranks) if (size, op, n, mode) in results]
                    at = [k + 0.8 * (i + 0.5) / len(modes) - 0.4 for k, _ in found]
                    bars = panel.bar(at, [r["median_ms"] for _, r in found], 0.8 / len(modes), color=f"C{i}", label=mode)
                    panel.bar_label(bars, [number(r["median_ms"]) for _, r in found], fontsize=7)
                panel.set(title=NAMES.get(op, op), yscale="log", xlim=(-0.5, len(of_ranks) - 0.5))
                panel.set_xticks(range(len(of_ranks)), map(ranks, of_ranks))
            panels[0][-1].legend()
            save(figure, f"{out}-{size}.svg")
    with open(f"{out}.md", "w", encoding="utf-8") as file:
        file.write("\n".join(parts))


def read_strategies(paths):
    """The rows by (size, pixels), program and strategy, in the order of the files."""
    pictures = {}
    for path in paths:
        try:
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file, delimiter="\t"))
        except OSError as error:
            fail(error)
        for line, row in enumerate(rows, 2):
            if tuple(row) != FIELDS or None in row.values():
                fail(f"{path}, line {line}: the columns are not those of horus-strategies")
            try:
                values = {key: float(row[key]) for key in FIELDS[4:]}
                size = int(row["size"])
            except ValueError as error:
                fail(f"{path}, line {line}: {error}")
            if not all(0 < value < float("inf") for value in values.values()):
                fail(f"{path}, line {line}: a time that cannot be")
            programs = pictures.setdefault((size, row["pixels"]), {})
            programs.setdefault(row["program"], {})[row["strategy"]] = values
    if not pictures:
        fail("there are no rows")
    return pictures


def strategies(out, *paths):
    for (size, pixels), programs in sorted(read_strategies(paths).items()):
        for program, times in programs.items():
            if "explicit" not in times:
                fail(f"{program} {size} {pixels}: the strategy Explicit is not there")
        if not pyplot:
            continue
        names = list(dict.fromkeys(s for times in programs.values() for s in times))
        units = [times["explicit"]["measured_ms"] for times in programs.values()]
        figure, axes = pyplot.subplots(figsize=(max(6, 0.2 * len(names) * len(programs)), 4))
        for i, name in enumerate(names):
            found = [(k, times[name], unit) for k, (times, unit) in enumerate(zip(programs.values(), units)) if name in times]
            at = [k + 0.8 * (i + 0.5) / len(names) - 0.4 for k, _, _ in found]
            share = lambda key: [t[key] / unit for _, t, unit in found]
            measured = share("measured_ms")
            spread = [[m - low for m, low in zip(measured, share("low_ms"))], [high - m for m, high in zip(measured, share("high_ms"))]]
            axes.bar(at, measured, 0.8 / len(names), yerr=spread, label=name, error_kw={"linewidth": 0.7})
            axes.plot(at, share("predicted_ms"), "k_", label="predicted" if name == names[-1] else None)
        axes.set_title(f"Copying strategies, {size} x {size}, {pixels}: time in parts of Explicit")
        axes.set_xticks(range(len(programs)), [f"{program}\n{unit:.3g} ms" for program, unit in zip(programs, units)])
        axes.legend(fontsize=7, ncols=3)
        save(figure, f"{out}-{size}-{pixels}.svg")


def timeline(out, path):
    try:
        spans = [e for e in read_json(path)["traceEvents"] if e.get("ph") == "X"]
    except (KeyError, TypeError) as error:
        fail(f"{path} is no trace: {error!r}")
    # The predictions for a plan precede its steps.
    plans = [i for i, e in enumerate(spans) if e["pid"] == PREDICTED and (i == 0 or spans[i - 1]["pid"] != PREDICTED)]
    if not plans:
        fail(f"{path}: no plan is predicted")
    predicted = [e for e in spans[plans[-1]:] if e["pid"] == PREDICTED]
    begin = min(e["ts"] for e in predicted)
    measured = [e for e in spans if e["pid"] == 0 and e["ts"] + e["dur"] > begin]
    if not pyplot:
        return
    rows = []
    figure, axes = pyplot.subplots(figsize=(12, 4))
    for name, part in (("measured", measured), ("predicted", predicted)):
        for queue in sorted({e["tid"] for e in part if e["tid"] < len(QUEUES)}):
            bars = [(max(e["ts"] - begin, 0) / 1e3, (e["ts"] + e["dur"] - max(begin, e["ts"])) / 1e3) for e in part if e["tid"] == queue]
            axes.broken_barh(bars, (len(rows) - 0.4, 0.8), facecolor=f"C{queue}", edgecolor="white", linewidth=0.3)
            rows.append(f"{QUEUES[queue]}, {name}")
    axes.set(title=os.path.basename(path), xlabel="ms", yticks=range(len(rows)), yticklabels=rows)
    axes.invert_yaxis()
    save(figure, out)


def chart(path, *parts):
    """Panels side by side, for other scripts. A panel is a dictionary: `title`, `x` and `y` (names of axes), `curves` (name: (xs,
    ys), or (xs, ys, format)), `log` (the axes with logarithmic scale, as "y"); or with `grid` (rows of numbers, at `at`: xs,
    ys) instead of curves a map of them, with lines at `levels`. Names as xs are places beside each other."""
    if not pyplot:
        return
    figure, axes = pyplot.subplots(1, len(parts), squeeze=False, figsize=(min(4.2 * len(parts), 13), 3.6), layout="constrained")
    for part, panel in zip(parts, axes[0]):
        panel.set(title=part["title"], xlabel=part.get("x", ""), ylabel=part.get("y", ""))
        panel.title.set_fontsize(9)
        if "grid" in part:
            panel.grid(False)
            xs, ys = part["at"]
            picture = panel.imshow(part["grid"], origin="lower", extent=(-0.5, len(xs) - 0.5, -0.5, len(ys) - 0.5), aspect="auto")
            if part.get("levels"):
                panel.clabel(panel.contour(part["grid"], levels=part["levels"], colors="white"))
            step = max(1, len(xs) // 7)
            panel.set_xticks(range(0, len(xs), step), xs[::step])
            panel.set_yticks(range(0, len(ys), step), ys[::step])
            figure.colorbar(picture, ax=panel)
            continue
        for name, (xs, ys, *style) in part["curves"].items():
            panel.plot(xs, ys, *(style or ["o-"]), label=name, markersize=3, linewidth=1.2)
        panel.set(**{f"{axis}scale": "log" for axis in part.get("log", "")})
        panel.legend(fontsize=7)
    save(figure, path)


def main(arguments):
    kinds = {"scaling": scaling, "strategies": strategies, "timeline": timeline}
    if len(arguments) < 3 or arguments[0] not in kinds or (arguments[0] == "timeline" and len(arguments) != 3):
        fail("usage: plot.py scaling|strategies|timeline OUT FILE...")
    kinds[arguments[0]](*arguments[1:])
    if not pyplot:
        print("no plots: matplotlib is not installed", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
