"""How uneven BLNN's attention is on a trained embedding.

usage: attention_spread.py TEMPERATURE EMBEDDINGS.npy GRAPH.npz [TEMPERATURE EMBEDDINGS.npy GRAPH.npz ...]

GRAPH.npz has a SciPy CSR matrix in the members adj_data, adj_indices, adj_indptr, adj_shape, as the
public graphs do. Of every node with two neighbours or more the weights are the softmax of the cosines
between its embedding and its neighbours', divided by the temperature. Printed are the effective share of
neighbours (exp of the entropy of the weights over their number: 1 is equal weights) and the ratio of
the largest weight to the smallest.
"""
import sys

import numpy as np
import scipy.sparse as sp


def adjacency(path):
    members = np.load(path)
    parts = (members["adj_data"], members["adj_indices"], members["adj_indptr"])
    one_way = sp.csr_matrix(parts, shape=tuple(members["adj_shape"]))
    both_ways = ((one_way + one_way.T) > 0).tolil()
    both_ways.setdiag(False)
    return both_ways.tocsr()


def spread(embeddings, graph, temperature):
    norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
    rows = embeddings / np.maximum(norms, 1e-12)
    shares, ratios = [], []
    for node in np.flatnonzero(np.diff(graph.indptr) > 1):
        neighbours = graph.indices[graph.indptr[node]:graph.indptr[node + 1]]
        weights = np.exp(rows[neighbours] @ rows[node] / temperature)
        weights /= weights.sum()
        entropy = -(weights * np.log(weights)).sum()
        shares.append(np.exp(entropy) / len(neighbours))
        ratios.append(weights.max() / weights.min())
    return np.array(shares), np.array(ratios)


def main(words):
    if not words or len(words) % 3:
        sys.exit(__doc__)
    for temperature, embeddings, graph in zip(words[::3], words[1::3], words[2::3]):
        vectors = np.load(embeddings).astype(np.float64)
        shares, ratios = spread(vectors, adjacency(graph), float(temperature))
        print(f"{embeddings}: {len(shares)} nodes; effective share of neighbours: mean "
              f"{shares.mean():.3f}, lowest twentieth {np.quantile(shares, 0.05):.3f}; largest over "
              f"smallest weight: median {np.median(ratios):.2f}, highest twentieth "
              f"{np.quantile(ratios, 0.95):.2f}, most {ratios.max():.2f}")


main(sys.argv[1:])
