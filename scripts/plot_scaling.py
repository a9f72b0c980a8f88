"""Draws time per epoch over the number of nodes, from the lines of `blnn bench --format json`.

usage: blnn bench generated-10000 generated-100000 generated-1000000 --format json > lines.json
       plot_scaling.py lines.json docs/scaling.svg

Both axes are logarithmic: cost that grows linearly is a line parallel to the dashed one.
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "blnn"
import matplotlib.pyplot as plt


def main():
    source, target = sys.argv[1:]
    rows = [json.loads(line) for line in open(source) if line.startswith("{")]
    nodes = [int(r["graph"].split("-")[1]) for r in rows]
    seconds = [r["seconds_per_epoch"] for r in rows]
    middle = sorted(s / n for s, n in zip(seconds, nodes))[len(rows) // 2]
    figure, axes = plt.subplots(figsize=(6, 3.6))
    axes.loglog(nodes, [middle * n for n in nodes], "--", color="#999999", label=f"{1e6 * middle:.1f} µs a node")
    axes.loglog(nodes, seconds, "o-", color="#0072b2", label="measured")
    axes.set(xlabel="nodes (10 neighbours each)", ylabel="seconds per epoch")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
