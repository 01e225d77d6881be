#!/usr/bin/env python3
"""Sets result files side by side: one table per size and thread count, peers as ratios to Horus.

A ratio above 1 means that Horus is faster. Where Horus was measured twice (before and after the peers) the mean of both
medians counts, and the larger of both is shown as its spread.
"""
import json
import platform
import statistics
import subprocess
import sys
import time

rows = {}
device = ""
for path in sys.argv[1:]:
    data = json.load(open(path))
    device = data.get("device", device)
    for r in data["results"]:
        rows.setdefault((r["size"], r["threads"]), {}).setdefault(r["op"], {}).setdefault(r["peer"], []).append(r)

cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
print(f"{time.strftime('%Y-%m-%d')}, {device} on {cpu}, commit {commit}. Medians; a ratio above 1: Horus is faster.")
for (size, threads), ops in sorted(rows.items()):
    peers = sorted({p for by_peer in ops.values() for p in by_peer if p != "horus"})
    print(f"\n### {size}x{size}, {threads} thread{'s' if threads > 1 else ''}\n")
    print("| | Horus ms | floor | " + " | ".join(f"{p} ms | ratio" for p in peers) + " |")
    print("| --- | --- | --- |" + " --- | --- |" * len(peers))
    for op, by_peer in ops.items():
        if "horus" not in by_peer:
            continue
        ours = [r["median_ms"] for r in by_peer["horus"]]
        mean = statistics.mean(ours)
        floor = [r["floor_ms"] for rs in by_peer.values() for r in rs if "floor_ms" in r]
        cells = [f"{mean:.3g}" + (f" ({max(ours):.3g})" if len(ours) > 1 else ""), f"{floor[0] / mean:.2f}" if floor else ""]
        for p in peers:
            if p in by_peer:
                t = by_peer[p][0]["median_ms"]
                cells += [f"{t:.3g}", f"{t / mean:.2f}"]
            else:
                cells += ["", ""]
        print(f"| {op} | " + " | ".join(cells) + " |")
