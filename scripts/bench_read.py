"""How fast is an edge list read, beside polars and pyarrow?

    cargo build --release -p blnn --example read_edges
    python scripts/bench_read.py target/release/examples/read_edges [edges] [nodes]

Needs Python with numpy, scipy, polars and pyarrow. All read the same csv of random edges (source
and target; whole numbers, then texts such as user_123) on two threads, several times in turn; the
least time of each counts. What blnn calls reading includes the numbering of texts, which the
others leave for later (but for polars with categorical columns). `graph` goes on from there to a symmetric adjacency without duplicates or
self-loops over the ids that occur: for polars by numpy and scipy, for whole numbers only.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

THREADS = "2"
os.environ["POLARS_MAX_THREADS"] = THREADS

import numpy as np  # noqa: E402
import polars  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.csv  # noqa: E402
import scipy.sparse  # noqa: E402

ROUNDS = 3


def write(path, edges, nodes, texts):
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, nodes, (edges, 2))
    frame = polars.DataFrame({"source": pairs[:, 0], "target": pairs[:, 1]})
    if texts:
        frame = frame.select(polars.format("user_{}", polars.col(c)).alias(c) for c in frame.columns)
    frame.write_csv(path)


def with_polars(path, texts):
    start = time.perf_counter()
    frame = polars.read_csv(path)
    read = time.perf_counter() - start
    if texts:
        return read, None, None
    ids, rows = np.unique(frame.to_numpy().ravel(), return_inverse=True)
    i, j = rows.reshape(-1, 2).T
    keep = i != j
    i, j = i[keep], j[keep]
    shape = (len(ids), len(ids))
    both = scipy.sparse.coo_array(
        (np.ones(2 * len(i), np.int8), (np.r_[i, j], np.r_[j, i])), shape=shape
    ).tocsr()
    return read, time.perf_counter() - start, both.nnz


def with_polars_numbering(path):
    kinds = {"source": polars.Categorical, "target": polars.Categorical}
    start = time.perf_counter()
    polars.read_csv(path, schema_overrides=kinds)
    return time.perf_counter() - start, None, None


def with_pyarrow(path):
    pyarrow.set_cpu_count(int(THREADS))
    start = time.perf_counter()
    pyarrow.csv.read_csv(path)
    return time.perf_counter() - start, None, None


def with_blnn(program, path):
    out = subprocess.run([program, path, THREADS], check=True, capture_output=True, text=True)
    report = json.loads(out.stdout)
    entries = 2 * report["understood"]["edges"]
    return report["read_seconds"], report["graph_seconds"], entries, report["peak_memory"]


def compare(program, path, texts):
    size = os.path.getsize(path) / 1e6
    print(f"{'texts' if texts else 'whole numbers'}: {size:.0f} MB")
    best = {}
    for _ in range(ROUNDS):
        *blnn, peak = with_blnn(program, path)
        runs = {"blnn": blnn, "polars": with_polars(path, texts), "pyarrow": with_pyarrow(path)}
        if texts:
            runs["polars, categorical"] = with_polars_numbering(path)
        assert texts or runs["blnn"][2] == runs["polars"][2], "the graphs differ"
        for name, (read, graph, _) in runs.items():
            old = best.get(name, (float("inf"), float("inf")))
            best[name] = (min(old[0], read), min(old[1], graph or float("inf")))
    for name, (read, graph) in best.items():
        ratio = read / best["polars"][0]
        line = f"  {name:20} read {read:6.3f} s = {size / read:6.0f} MB/s ({ratio:.2f} × polars)"
        print(line + ("" if graph == float("inf") else f", graph {graph:6.3f} s"))
    print("  peak memory of blnn:", peak)


def main():
    program = sys.argv[1]
    edges = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    nodes = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    print(f"{edges} edges, {nodes} nodes, {THREADS} threads, best of {ROUNDS}")
    with tempfile.TemporaryDirectory() as folder:
        for texts in [False, True]:
            path = os.path.join(folder, "edges.csv")
            write(path, edges, nodes, texts)
            compare(program, path, texts)


if __name__ == "__main__":
    main()
