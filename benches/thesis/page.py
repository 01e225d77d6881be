#!/usr/bin/env python3
"""The page of benches/thesis.sh: OUT/README.md and its plots, from the raw results in OUT/raw and the values of the thesis in
values.tsv beside this file.

    benches/thesis/page.py OUT

Each section is a function that returns lines of Markdown, or fails with `Missing` if its results are not there: it is then
listed with the reason. Plots need matplotlib.
"""
import csv
import json
import math
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import plot  # noqa: E402

SECTIONS = []
DETECTORS = ("convrot", "convuv", "conv2d")
RANKS = (1, 2, 4, 8, 12, 16, 20)
SIZES = {1024: "1 MP", 2048: "4 MP", 2896: "8 MP", 4096: "16 MP"}
NOT_HERE = [
    ("Figures 3.1, 3.2, 3.4, 3.7, 3.8, 4.9, 5.1 to 5.4, 5.7", "code, schematics and formulas, which measure nothing"),
    ("Figures 3.9, 3.10", "padding against bank conflicts: tiles in shared memory have none, and there is no switch"),
    ("Figures 3.14 to 3.16, \"naive\"; 3.16, the read-only cache", "no dense filter without shared memory, no switch for the cache"),
    ("Figure 4.8, Table 4.4", "the call graph and profile of the Parallel Ocean Program, which is not here"),
    ("Figure 4.11 for the whole model", "the Parallel Ocean Program is not here, only its vertical mixing"),
    ("Figure 5.12", "part of `strategies`"),
    ("Paper 002, Figure 11, its own steps", "no switches for shared memory, padding, block size and unrolling of a loop's kernel"),
    ("Paper 003, Table VI and levels in Table VII", "a thread computes points of one level"),
    ("their cards", "M1060, GTX480, GTX680, Titan, K20, C870, C1060: none is here"),
]


class Missing(Exception):
    pass


class Page:
    def __init__(self, out):
        self.out, self.raw = Path(out), Path(out) / "raw"
        self.where = dict(self.tsv("where.tsv"))
        with open(HERE / "values.tsv", newline="", encoding="utf-8") as file:
            self.values = list(csv.DictReader(file, delimiter="\t"))

    def has(self, name):
        return (self.raw / name).exists()

    def text(self, name):
        if not self.has(name):
            part = name.split(".")[0].split("-")[0]
            why = [path.read_text(encoding="utf-8").strip() for path in sorted(self.raw.glob(f"{part}*.why"))]
            raise Missing(why[0] if why else f"not measured (`benches/thesis.sh {part}`)")
        return (self.raw / name).read_text(encoding="utf-8")

    def tsv(self, name):
        return [line.split("\t") for line in self.text(name).splitlines()]

    def json(self, name):
        data = json.loads(self.text(name))
        return data["results"] if isinstance(data, dict) and "results" in data else data

    def all(self, pattern):
        """The names of raw results, at least one."""
        found = sorted(path.name for path in self.raw.glob(pattern) if path.suffix != ".why")
        return found or [self.text(pattern)]

    def theirs(self, figure, curve=None, x=None):
        """The thesis's value, or "" if none is known."""
        found = (r["value"] for r in self.values if r["figure"] == figure and curve in (None, r["curve"]) and x in (None, r["x"]))
        return next(found, "")

    def said(self, *figures):
        """All that text and tables there tell of these figures."""
        by = {}
        for r in (r for r in self.values if r["figure"] in figures):
            by.setdefault((r["source"], r["curve"]), []).append(f"{r['x']}: {r['value']} {r['unit']}".strip())
        return ["", "There:"] + [f"- {curve} ({source}): {'; '.join(told)}" for (source, curve), told in by.items()] + [""]

    def chart(self, name, *panels):
        plot.chart(self.out / f"{name}.svg", *panels)
        return ["", f"![{name}]({name}.svg)", ""] if plot.pyplot else []


def section(title, how):
    def keep(f):
        SECTIONS.append((title, how, f))
        return f
    return keep


def cell(value):
    if isinstance(value, float) and 0 < value < float("inf"):
        return plot.number(value) if value >= 0.1 else f"{value:.3g}"
    return "" if value is None else str(value)


def table(head, rows):
    head = [h.strip() for h in head.split("|")]
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return ["", line(head), "| --- " * len(head) + "|"] + [line(map(cell, row)) for row in rows] + [""]


def saved(naive, lazy):
    return round(100 * (1 - lazy / naive), 1)


def error(predicted, measured):
    return f"{100 * (predicted / measured - 1):+.0f} %"


def predicted(page):
    """Milliseconds by (program, size, machine, ranks, mode)."""
    return {(a, int(s), m, int(n), mode): float(ms) for a, s, m, n, mode, ms in page.tsv("ranks.tsv")}


@section("Table 2.2: user-perceived speedup, picture file to picture file", "measured")
def user(page):
    times, rows = {}, []
    for name in page.all("user-*.tsv"):
        for app, size, device, seconds in page.tsv(name):
            times.setdefault((app, int(size), device), []).append(float(seconds))
    for app in DETECTORS:
        for size, mp in SIZES.items():
            cpu, gpu = (statistics.median(times[app, size, d]) if (app, size, d) in times else None for d in ("cpu", "cuda"))
            if cpu or gpu:
                rows.append((plot.NAMES[app], mp, cpu, gpu, cpu / gpu if cpu and gpu else None))
    gpu = "there is no GPU here" if page.has("user.why") else "the CPU is the GPU's host"
    return [f"PGM to PNG, whole processes, kernels compiled before; seconds, medians; {gpu}."] + table("detector | size | CPU | GPU | speedup", rows)


@section("Table 2.2 on 1 to 20 CPUs and GPUs: Conv2D, 4096x4096", "predicted")
def user_ranks(page):
    ms, rows = predicted(page), []
    for n in (1, 2, 4, 8, 16, 20):
        cpu, gpu = (ms["conv2d", 4096, m, n, "fused"] / 1e3 for m in ("cpu16x1-ib", "h200x1-ib"))
        rows.append((n, cpu, gpu, cpu / gpu, *(page.theirs("Table 2.2", c, str(n)) for c in ("Conv2D CPU", "Conv2D GPU", "user-perceived speedup"))))
    return ["From the picture on rank 0's host to the result there, without files and the start of processes; a processor of 16 threads or",
            "an H200 in each host, InfiniBand (`--machine cpu16x1-ib`, `h200x1-ib`). Seconds; there 4 cores and a GTX480 in each.",
            *table("CPUs or GPUs | CPU | GPU | speedup | CPU there | GPU there | speedup there", rows)]


@section("Figures 2.8 and 2.9: naive and lazy, 1024x1024, nodes x GPUs", "predicted")
def lisa(page):
    ms, lines = predicted(page), []
    for app, figure in (("convuv", "Figure 2.8"), ("conv2d", "Figure 2.9")):
        rows = []
        for nodes, each in ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (4, 2)):
            naive, lazy, fused = (ms[app, 1024, f"h200x{each}-ib", nodes * each, m] for m in plot.MODES)
            rows.append((f"{nodes}x{each}", naive, lazy, fused, saved(naive, lazy)))
        lines += [f"{figure}, {plot.NAMES[app]}; there lazy saves up to {page.theirs(figure, None, 'most')} %. Milliseconds."]
        lines += table("nodes x GPUs | naive | lazy | fused | lazy saves %", rows)
    return lines


@section("Figures 2.8 to 2.12 on the GPUs that are here: naive, lazy, fused", "measured")
def modes(page):
    found = {(r["size"], r["op"], r["ranks"], r["mode"]): r for name in page.all("modes-*.json") for r in page.json(name)}
    rows = []
    for size, app, ranks in sorted({key[:3] for key in found}, key=lambda k: (k[0], DETECTORS.index(k[1]), k[2])):
        of = [found[size, app, ranks, m] for m in plot.MODES]
        ms = [r["median_ms"] for r in of]
        rows.append((plot.NAMES[app], size, ranks, *ms, saved(*ms[:2]), " / ".join(str(r["copies"]) for r in of)))
    return ["From pixels on the host to pixels on the host; milliseconds, medians; copies between host and device of one run.",
            *table("detector | size | ranks | naive | lazy | fused | lazy saves % | copies", rows)]


@section("Figures 2.10 to 2.12: naive and lazy on 1 to 20 GPUs, 4096x4096", "predicted")
def das4(page):
    ms, panels = predicted(page), []
    lines = ["One H200 in each host, InfiniBand. There every operation is a kernel that is not optimized, so that copies weigh less.", ""]
    for app, figure in (("convuv", "Figure 2.10"), ("conv2d", "Figure 2.11"), ("convrot", "Figure 2.12")):
        of = {m: [ms[app, 4096, "h200x1-ib", n, m] for n in RANKS] for m in plot.MODES}
        gains = [saved(naive, lazy) for naive, lazy in zip(of["naive"], of["lazy"])]
        lines += [f"{figure}, {plot.NAMES[app]}: lazy saves {max(gains)} % at most and {statistics.mean(gains):.1f} % in the mean; "
                  f"there {page.theirs(figure, None, 'most')} and {page.theirs(figure, None, 'mean')} %. Milliseconds."]
        lines += table("GPUs | " + " | ".join(map(str, RANKS)), [(m, *of[m]) for m in plot.MODES])
        panels.append({"title": f"{figure}: {plot.NAMES[app]}, predicted", "x": "H200s, one a node", "y": "ms", "log": "y",
                       "curves": {m: (RANKS, of[m]) for m in plot.MODES}})
    return lines + page.chart("figures-2.10-2.12", *panels)


@section("Figures 2.13 to 2.15: speedup over one GPU", "predicted")
def speedups(page):
    ms = predicted(page)
    up = lambda app, size: [ms[app, size, "h200x1-ib", 1, "fused"] / ms[app, size, "h200x1-ib", n, "fused"] for n in RANKS]
    there = {n: float(page.theirs("Table 2.2", "Conv2D GPU", str(n))) for n in RANKS if page.theirs("Table 2.2", "Conv2D GPU", str(n))}
    panels = [{"title": "Figure 2.13: 4096x4096", "curves": {plot.NAMES[a]: (RANKS, up(a, 4096)) for a in DETECTORS}}]
    panels[0]["curves"]["Conv2D there (Table 2.2)"] = (list(there), [there[1] / s for s in there.values()], "k--")
    rows = [("2.13", plot.NAMES[a], "16 MP", *up(a, 4096), there[1] / there[20] if a == "conv2d" else None) for a in DETECTORS]
    for app, figure in (("conv2d", "Figure 2.14"), ("convuv", "Figure 2.15")):
        panels.append({"title": f"{figure}: {plot.NAMES[app]}", "curves": {mp: (RANKS, up(app, s)) for s, mp in SIZES.items()}})
        for size, mp in SIZES.items():
            value = page.theirs(figure, mp, "20")
            rows.append((figure[7:], plot.NAMES[app], mp, *up(app, size), value))
            if value:
                panels[-1]["curves"][f"{mp} there"] = ([20], [float(value)], "kx")
    for panel in panels:
        panel.update(x="H200s, one a node", y="speedup")
    return ["One H200 in each host, InfiniBand; fused; picture and result on rank 0's host. The faster a GPU, the more weigh scatter and gather.",
            *table("figure | detector | size | " + " | ".join(map(str, RANKS)) + " | 20 there", rows), *page.chart("figures-2.13-2.15", *panels)]


class Sweep:
    """Filters by (rows, columns)."""

    def __init__(self, page, name):
        data = page.json(name)[0]
        self.filters, self.size = {(f["rows"], f["columns"]): f for f in data["filters"]}, data["size"]
        self.sides = sorted({k[0] for k in self.filters if min(k) > 1})
        self.dense = [k for k in self.filters if min(k) > 1]

    def rate(self, key):
        """GFLOP/s of the direct filter."""
        return 2 * key[0] * key[1] * self.size ** 2 / self.filters[key]["ways"][0]["measured"] / 1e9

    def panel(self, title, value, **more):
        return {"title": title, "x": "columns", "y": "rows", "at": (self.sides, self.sides),
                "grid": [[value[h, w] for w in self.sides] for h in self.sides], **more}


@section("Figures 3.3 to 3.11 and 3.14 to 3.16: steps of optimization of a 2-D filter", "measured")
def shapes(page):
    tilings = [f"{b}-1x{t}-0" for b, tiles in (("16x16", (1, 2, 4, 8)), ("32x32", (1, 2, 4))) for t in tiles]
    chosen = Sweep(page, "shapes-chosen.json")
    rate = {}
    for name in (*tilings, "16x16-1x4-3000", "chosen"):
        if page.has(f"shapes-{name}.json"):
            sweep = Sweep(page, f"shapes-{name}.json")
            rate[name] = {k: sweep.rate(k) for k in chosen.dense}
    tilings = [t for t in tilings if t in rate] or page.text("shapes-16x16-1x1-0.json")
    best = {k: max(tilings, key=lambda t: rate[t][k]) for k in chosen.dense}
    rate["adaptive"] = {k: rate[best[k]][k] for k in best}
    labels = [f"{n}x{n}" for n in chosen.sides]
    named = {"32x32, 1 pixel a thread (3.3b)": "32x32-1x1-0", "32x32, 1x4 (3.5b)": "32x32-1x4-0", "16x16, 1x4 (3.6b)": "16x16-1x4-0",
             f"adaptive: best of {len(tilings)} (3.11)": "adaptive", "16x16, 1x4, unrolled up to 750 taps": "16x16-1x4-3000", "Horus's choice (3.12)": "chosen"}
    steps = {step: [rate[name][n, n] for n in chosen.sides] for step, name in named.items() if name in rate}
    used = [shape.split("-")[1] for shape in best.values()]
    shares = ", ".join(f"{t} in {100 * used.count(t) / len(used):.1f} %" for t in sorted(set(used)))
    maps = [chosen.panel(title, rate[name]) for title, name in (("16x16 (3.3a)", "16x16-1x1-0"), ("16x16, 1x2 (3.6a)", "16x16-1x2-0"),
            ("16x16, 1x4 (3.6b)", "16x16-1x4-0"), ("32x32, 1x4 (3.5b)", "32x32-1x4-0")) if name in rate]
    return [f"Threads of a block and pixels of a thread are set by `HORUS_TUNING`; direct filters of random taps, {chosen.size}x{chosen.size} f32, GFLOP/s.",
            *table("step | " + " | ".join(labels), [(step, *v) for step, v in steps.items()]),
            f"The fastest tiling of {len(used)} filters (Figure 3.11): {shares}.",
            *page.chart("figure-3.14", {"title": "Figures 3.14 to 3.16", "x": "filter", "y": "GFLOP/s", "curves": {s: (labels, v) for s, v in steps.items()}}),
            *page.chart("figures-3.3-3.6", *maps),
            "Pixels of a thread are neighbours here, there a block's width apart. Rows of tiles have multiples of four pixels and no padding: with one",
            "pixel a thread and blocks 16 wide, 31 columns make rows of 48 pixels, which are free of bank conflicts, 17 and 43 make 32 and 64, which",
            "are not; two or four pixels are loaded at once.", *page.said("Figure 3.11", "Figure 3.14", "Figure 3.15", "Figure 3.16")]


@section("Figures 3.12, 3.13 and 3.17: filters of all sizes, direct and by FFT", "measured")
def filters(page):
    sweep = Sweep(page, "filters.json" if page.has("filters.json") else "shapes-chosen.json")
    rate = {k: sweep.rate(k) for k in sweep.filters}
    ways = {k: {w["name"]: w["measured"] for w in f["ways"]} for k, f in sweep.filters.items()}
    ratio = {k: min(t for name, t in ways[k].items() if name != "direct") / ways[k]["direct"] for k in sweep.dense if len(ways[k]) > 1}
    near = [ways[k][f["chosen"]] <= 1.05 * min(ways[k].values()) for k, f in sweep.filters.items()]
    best = max(sweep.dense, key=rate.get)
    faster = sorted(math.prod(k) for k in ratio if ratio[k] < 1)
    side = sweep.sides
    lines = [f"{sweep.size}x{sweep.size} f32, {len(near)} filters of random taps, least of three runs. The fastest direct one is {best[0]}x{best[1]} with",
             f"{rate[best]:.0f} GFLOP/s. The algorithm that is chosen within 1e-5 is within 5 % of the fastest for {sum(near)} of {len(near)}.",
             *table("filter | direct, GFLOP/s | time of FFT / direct | there (3.17)",
                    [(f"{n}x{n}", rate[n, n], ratio.get((n, n)), page.theirs("Figure 3.17", None, f"{n}x{n}")) for n in side]),
             f"FFT is faster for {len(faster)} of {len(ratio)} filters" + (f", the smallest of {faster[0]} taps" if faster else "") + ". There it is one FFT of",
             "the whole image by CUFFT, here of tiles by kernels of ours: both columns compare with different transforms."]
    maps = [sweep.panel("Figure 3.12: direct, GFLOP/s", rate)]
    if len(ratio) == len(sweep.dense):
        maps.append(sweep.panel("Figure 3.17: FFT / direct, time", ratio, levels=[0.5, 1, 2, 4]))
    lines += page.chart("figures-3.12-3.17", *maps)
    if (1, side[0]) in rate:
        along = {"horizontal": [rate[1, n] for n in side], "vertical": [rate[n, 1] for n in side]}
        lines += table("Figure 3.13, taps | " + " | ".join(map(str, side)), [(f"{k}, GFLOP/s", *v) for k, v in along.items()])
        curves = {k: (side, v) for k, v in along.items()}
        lines += page.chart("figure-3.13", {"title": "Figure 3.13: along one axis", "x": "taps", "y": "GFLOP/s", "curves": curves})
    return lines + page.said("Figure 3.12", "Figure 3.17")


@section("Table 3.1: launch shapes", "measured")
def tune(page):
    lines = []
    for what in ("separable", "correlate"):
        text, rows = page.text(f"tune-{what}.txt").splitlines(), []
        found = [json.loads(line.rstrip(",")) for line in text if line.startswith("{")]
        for line, s in zip((line for line in text if " ms ->" in line), found):
            chosen, fastest = (float(part.split()[-1]) for part in line.split(" ms")[:2])
            rows.append((s["size"], f"{s['bx']}x{s['by']}", f"{s['rows']}x{s['cols']}", s["unroll"] or "no", chosen, fastest, chosen / fastest))
        near = sum(row[-1] <= 1.05 for row in rows)
        lines += [f"`horus-tune {what}`, a few seconds each; the shape chosen without a search is within 5 % of the fastest found in {near} of {len(rows)}.",
                  *table("taps | block | pixels per thread | unrolled up to | chosen, ms | fastest, ms | chosen / fastest", rows)]
    return lines + ["Both passes of a separable filter are one kernel here: one shape serves both."] + page.said("Table 3.1")


def model(profile, how, up, down, kernel, bands):
    """Seconds by the equations of Figure 5.7 for two copy engines without implicit synchronization. Copies in both directions at
    once take `both_ways` times as long, as measured."""
    u, d, both = profile["upload"], profile["download"], profile["both_ways"]
    fixed = lambda line: line["latency"] + line["overhead"]
    if how == "explicit":
        return sum(fixed(way["pinned"]) + size / way["pinned"]["bandwidth"] for way, size in ((u, up), (d, down))) + kernel
    enter, leave = u["mapped" if how == "implicit" else "pinned"], d["pinned" if how == "streams" else "mapped"]
    hd, dh, waits = both * up / enter["bandwidth"], both * down / leave["bandwidth"], (bands - 1) * max(enter["gap"], leave["gap"])
    if how == "implicit":
        return fixed(enter) + fixed(leave) + max(hd, kernel, dh)
    return fixed(enter) + fixed(leave) + max(hd + waits + (kernel + dh) / bands, kernel + (hd + dh) / bands, dh + waits + (kernel + hd) / bands)


@section("Figures 4.10, 5.9 and 5.10: parts of an ocean model by copying strategy", "measured, and predicted by chapter 5's equations")
def fields(page):
    profile, lines, panels = json.loads(page.text("machine.json")), [], []
    for size, figure in (("42x229x304", "4.10"), ("42x1024x1024", "5.9, 5.10")):
        names = [h for h in ("explicit", "streams", "implicit", "hybrid", "auto") if h == "explicit" or page.has(f"fields-{size}-{h}.json")]
        found = {(r["op"], how, r["arrays"]): r for how in names for r in page.json(f"fields-{size}-{how}.json")}
        rows = []
        for op in ("density", "state", "mixing"):
            alone = found[op, "explicit", "device"]
            up, down = (8 * math.prod(alone["size"]) * alone["fields"][k] for k in ("read", "made"))
            for how in names:
                ms = found[op, how, "pixels"]["ms"]
                guess = None if how == "auto" else 1e3 * model(profile, how, up, down, alone["ms"] / 1e3, 42)
                rows.append((op, how, ms, guess, guess and error(guess, ms), alone["ms"]))
        lines += [f"{size} f64 (Figure {figure}), from page-locked to page-locked arrays, ms; streams and hybrid in 42 bands, as many as levels there.",
                  *table("program | strategy | measured | predicted | error | on the device alone", rows)]
        for op in ("state", "mixing"):
            of = [r for r in rows if r[0] == op and r[3]]
            panels.append({"title": f"{op}, {size}", "y": "ms", "log": "y", "curves": {
                "measured": ([r[1] for r in of], [r[2] for r in of], "o"), "predicted": ([r[1] for r in of], [r[3] for r in of], "k_")}})
    return [*lines, *page.chart("figures-4.10-5.10", *panels),
            "`state` is the thesis's with derivatives, `density` without; `mixing` is its `buoydiff` and `ddmix` together, which are one program here.",
            *page.said("Figure 4.10", "Figure 5.9", "Figure 5.10")]


@section("Figure 4.11: CPU cores with and without a GPU", "measured, of vertical mixing instead of the whole model")
def cores(page):
    found = [(r["op"], n, r["ms"]) for n in sorted(int(name[6:-5]) for name in page.all("cores-*.json")) for r in page.json(f"cores-{n}.json")]
    if page.has("fields-42x229x304-auto.json"):
        found += [(r["op"], "GPU, from arrays to arrays", r["ms"]) for r in page.json("fields-42x229x304-auto.json") if r["arrays"] == "pixels"]
    rows = [(op, n, ms, next(f[2] for f in found if f[0] == op) / ms) for name in ("state", "mixing") for op, n, ms in found if op == name]
    return ["42x229x304 f64, one evaluation."] + table("program | threads | ms | times the first", rows) + page.said("Figure 4.11")


@section("Figures 5.5 and 5.6: copies of 16 MB, by number of bands", "measured, and predicted by chapter 5's equations")
def copies(page):
    profile, copied, rows, single, parameters = json.loads(page.text("machine.json")), page.text("copies.txt"), [], [], []
    for n in sorted(int(name[6:-5]) for name in page.all("bands-*.json")):
        by = {r["arrays"]: r for r in page.json(f"bands-{n}.json")}
        size = 8 * math.prod(by["pixels"]["size"])
        guess = 1e3 * model(profile, "streams", size, size, by["device"]["ms"] / 1e3, n)
        rows.append((n, by["pixels"]["ms"], guess, error(guess, by["pixels"]["ms"])))
    ways = [(profile[name]["pinned"], name, figure, curve) for name, figure, curve in (("upload", "Figure 5.5", "up"), ("download", "Figure 5.6", "down"))]
    for line in filter(None, copied.split("locked up", 1)[1].splitlines()[1:]):
        mib, *_, up, down = map(float, line.split())
        single.append([int(mib)])
        for (way, *_), rate in zip(ways, (up, down)):
            ms, guess = mib * 2 ** 20 / rate / 1e6, 1e3 * (way["latency"] + way["overhead"] + mib * 2 ** 20 / way["bandwidth"])
            single[-1] += [ms, guess, error(guess, ms)]
    for way, name, figure, curve in ways:
        here = {"L+o": f"{1e3 * (way['latency'] + way['overhead']):.6f}", "g": f"{1e3 * way['gap']:.6f}", "G": f"{1e3 / way['bandwidth']:.3e}"}
        parameters += [(f"{name}, {k}", v, page.theirs(figure, curve, k)) for k, v in here.items()]
    bands, measured, guessed, _ = zip(*rows)
    return ["16 MiB up, through a kernel that copies, and down, in bands, ms. Horus has no copy in bands without a kernel, and no single direction in bands.",
            *table("bands | measured | predicted | error", rows),
            *page.chart("figures-5.5-5.6", {"title": "16 MiB up and down", "x": "bands", "y": "ms", "log": "x",
                                            "curves": {"measured": (bands, measured), "predicted": (bands, guessed)}}),
            "Single copies of page-locked memory, ms, and t = L + o + kG with the parameters that `horus-machine` measured:",
            *table("MiB | up | predicted | error | down | predicted | error", single),
            "Table 5.1, ms and ms/byte:", *table("parameter | here | there (PCIe 3.0)", parameters)]


@section("Figure 5.8: clauses of the model by number of streams", "computed from the equations and parameters there")
def clauses(page):
    (lo, g, G), (lo2, g2, G2) = ([float(page.theirs(f, c, k)) for k in ("L+o", "g", "G")] for f, c in (("Figure 5.5", "up"), ("Figure 5.6", "down")))
    up, down, kernel, streams = 128e6, 2e6, 10, range(1, 129)
    curves = {
        "dominant kernel (5.3)": [lo + up / n * G + kernel + lo2 + down / n * G2 for n in streams],
        "both transfers (5.4)": [lo + up * G + g * (n - 1) + lo2 + down * G2 + g2 * (n - 1) for n in streams],
        "in, one kernel and out (5.4)": [lo + up * G + g * (n - 1) + kernel / n + lo2 + down / n * G2 for n in streams],
        "one in and kernel, out (5.4)": [lo + up / n * G + kernel / n + lo2 + down * G2 + g2 * (n - 1) for n in streams],
    }
    top = [max(times) for times in zip(*curves.values())]
    lines = {k: (streams, v, "-") for k, v in curves.items()}
    return ["128 MB in, 2 MB out, a kernel of 10 ms, Table 5.1, one copy engine: the largest clause is least, "
            f"{min(top):.2f} ms, with {top.index(min(top)) + 1} streams.",
            *page.chart("figure-5.8", {"title": "Figure 5.8", "x": "streams", "y": "ms", "log": "x", "curves": lines})]


@section("Figure 5.11 and Section 5.6.6: programs by copying strategy", "measured, and predicted by Horus's model")
def strategies(page):
    times = {}
    for r in csv.DictReader(page.text("strategies.tsv").splitlines(), delimiter="\t"):
        times.setdefault((r["program"], r["pixels"]), {})[r["strategy"]] = (float(r["measured_ms"]), float(r["predicted_ms"]))
    errors = {k: [100 * abs(guess / ms - 1) for of in times.values() for s, (ms, guess) in of.items() if s.endswith(k)]
              for k in ("explicit", "implicit", "streams", "hybrid")}
    least = {program: min(ms for ms, _ in of.values()) for program, of in times.items()}
    right = sum(of["auto"][0] <= 1.03 * least[program] for program, of in times.items())
    gains = [of["explicit"][0] / least[program] for program, of in times.items()]
    return ["Figure 5.11, 2-D convolution 17x17, 4096x4096 f32, ms:",
            *table("strategy | measured | predicted | error", [(s, ms, guess, error(guess, ms)) for s, (ms, guess) in times["correlate 17", "f32"].items()]),
            f"Errors of predictions over {len(times)} programs (there four kernels on three GPUs), %:",
            *table("strategy | mean | median | most | mean there | most there", [
                (k, statistics.mean(v), statistics.median(v), max(v), *(page.theirs("Section 5.6.6", k, x) for x in ("mean", "most")))
                for k, v in errors.items()]),
            f"Horus's own choice is within 3 % of the fastest for {right} of {len(times)}; explicit copies take {statistics.median(gains):.2f} times as long as",
            f"the fastest in the median, {max(gains):.2f} at most.", *page.said("Figure 5.11", "Figure 5.12")]


@section("Paper 002, Figure 11: Jacobi's relaxation, step by step", "measured")
def jacobi(page):
    steps = (("naive", "every operation alone, with its copies"), ("lazy", "+ images stay on the device"), ("one", "+ one kernel a step"),
             ("fused", "+ several steps a launch"))
    found = {(s, r["op"]): r for s, _ in steps for r in page.json(f"jacobi-{s}.json")}
    size = next(iter(found.values()))["size"]
    rows = []
    for op, kind, bytes_of in (("jacobi", "f32", 8), ("jacobi-f64", "f64", 16)):
        for s, told in steps:
            ms = found[s, op]["ms_per_step"] if (s, op) in found else None
            rows.append((kind, told, ms, ms and 5 * size * size / ms / 1e6, ms and bytes_of * size * size / ms / 1e6))
    return [f"{size}x{size}, the right-hand side computed where it is read and 5 operations a point, as there; GB/s counts each point read and written",
            "once a step.",
            *table("type | step | ms | GFLOP/s | GB/s", rows), *page.said("Paper 002, Figure 11")]


@section("Paper 003, Tables V and VII: launch shapes of weather dynamics", "measured")
def hirlam(page):
    page.text("hirlam-chosen.txt")
    ms = lambda shape: float(page.text(f"hirlam-{shape}.txt").split("ranks: ")[1].split(" ms")[0]) if page.has(f"hirlam-{shape}.txt") else None
    blocks = "16x4 32x2 64x1 16x8 32x4 64x2 128x1 32x8 64x4 128x2 256x1 64x8 128x4 256x2 512x1".split()
    return [f"512x192x64 f32 on the device; Horus's own shapes take {cell(ms('chosen'))} ms. Shapes are set by `HORUS_TUNING` for all kernels; ms.", "",
            "Table V, rows per thread in blocks of 64x1:",
            *table("rows | here | there", [(n, ms(f"64x1-{n}"), page.theirs("Paper 003, Table V", None, str(n))) for n in (1, 2, 4, 8, 16)]),
            "Table VII, blocks of one level, one row per thread (there 64 levels per thread):",
            *table("block | here | there", [(b, ms(f"{b}-1"), page.theirs("Paper 003, Table VII", f"{b}x1")) for b in blocks])]


def main(arguments):
    if len(arguments) != 1:
        sys.exit("usage: page.py OUT")
    page = Page(arguments[0])
    text = ["# The thesis's tables and figures, and ours", "",
            f"`benches/thesis.sh` on {page.where['machine']}, {page.where['date']}, commit {page.where['commit']}. Each section says whether it was measured",
            "here or predicted by the model; *there* is the thesis (B. van Werkhoven) or the paper. Values there are of its tables and text: its plots are",
            "not at hand.", ""]
    left = []
    for title, how, f in SECTIONS:
        try:
            text += [f"## {title}", f"*{how[0].upper()}{how[1:]}.*", "", *f(page), ""]
        except Missing as why:
            left.append((title, str(why)))
    of_parts = [path for path in sorted(page.raw.glob("*.why")) if "." in path.stem]
    left += [(f"`{path.stem}`", path.read_text(encoding="utf-8").strip()) for path in of_parts]
    if left:
        text += ["## Left out here", *table("what | why", left)]
    text += ["## Not reproduced", *table("what | why", NOT_HERE)]
    lines = [line for line, before in zip(text, [None, *text]) if line or before]
    (page.out / "README.md").write_text("\n".join(lines).strip() + "\n", encoding="utf-8")
    if not plot.pyplot:
        print("no plots: matplotlib is not installed", file=sys.stderr)
    print(page.out / "README.md")


if __name__ == "__main__":
    main(sys.argv[1:])
