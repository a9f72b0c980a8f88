"""Takes a gnn-benchmark graph apart, to train on its features without dividing rows by their sums.

usage: plain_features.py GRAPH.npz FOLDER [--divide]

writes FOLDER/adjacency.npz, features.npz (1 where a value is positive) and labels.npy. With --divide rows are divided
by their sums, as `blnn` and the published code do: what is trained then must be what is trained on GRAPH.npz itself.

    blnn train --edges FOLDER/adjacency.npz --nodes FOLDER/features.npz --label FOLDER/labels.npy \
        --config configs/blnn/photo.toml --seed 1 --precision f32 --eval-every 250
"""
import argparse
import pathlib

import numpy as np
import scipy.sparse as sp


def matrix(graph, name):
    parts = [graph[f"{name}_{part}"] for part in ("data", "indices", "indptr")]
    return sp.csr_matrix(tuple(parts), shape=graph[f"{name}_shape"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--divide", action="store_true", help="divide rows by their sums")
    a = parser.parse_args()
    graph = np.load(a.graph, allow_pickle=True)
    features = matrix(graph, "attr")
    features.data = (features.data > 0).astype(np.float32)
    features.eliminate_zeros()
    if a.divide:
        sums = np.maximum(np.asarray(features.sum(axis=1)).ravel(), 1)
        features.data /= np.repeat(sums, np.diff(features.indptr)).astype(np.float32)
    a.folder.mkdir(parents=True, exist_ok=True)
    sp.save_npz(a.folder / "adjacency.npz", matrix(graph, "adj"))
    sp.save_npz(a.folder / "features.npz", features)
    np.save(a.folder / "labels.npy", graph["labels"].astype(np.int64))


if __name__ == "__main__":
    main()
