"""Compares `blnn eval` with scikit-learn on the same embeddings: agreement and speed, in one run.

usage: bench_eval.py BLNN ORACLE EMBEDDINGS.npy LABELS.npy [EMBEDDINGS.npy LABELS.npy ...]
                     [--splits 20] [--repeats 10] [--tasks classify,cluster,similar]

BLNN is the command's binary, ORACLE a Python file with scikit-learn's side: functions
classify_random(x, y, splits), cluster(x, y, repeats) and similar(x, y), as in sklearn_eval.py.
Both sides use all cores, one after the other; let nothing else run. Exit code 1 if a bar is missed.
"""
import argparse
import importlib.util
import json
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.preprocessing import normalize

# Largest differences in points, and the speed asked for: bar and goal.
PER_SPLIT, MEAN, CLUSTER, SIMILAR = 0.3, 0.08, 0.5, 0.01
SPEED = {"classify": (15, 25), "cluster": (3, 5), "similar": (10, 10)}


def ours(binary, embeddings, labels, task, a):
    command = [binary, "eval", embeddings, "--labels", labels, "--tasks", task, "--format", "json",
               "--splits", str(a.splits), "--repeats", str(a.repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def theirs(oracle, x, y, task, a):
    start = time.perf_counter()
    if task == "classify":
        found = 100 * np.array(oracle.classify_random(x, y, a.splits))
    elif task == "cluster":
        found = 100 * np.array(oracle.cluster(x, y, a.repeats))
    else:
        found = 100 * np.array(list(oracle.similar(x, y).values()))
    return found, time.perf_counter() - start


def differences(task, mine, found):
    """Named differences in points, each with its bar."""
    if task == "classify":
        gaps = np.array(mine["classify"]["per_split"]) - found
        return [("largest of a split", np.abs(gaps).max(), PER_SPLIT), ("mean", abs(gaps.mean()), MEAN)]
    if task == "cluster":
        keys = zip(["nmi", "homogeneity"], found)
        return [(k, abs(mine["cluster"][k]["mean"] - v.mean()), CLUSTER) for k, v in keys]
    return [(k, abs(mine["similar"][k] - v), SIMILAR) for k, v in zip(["s_at_5", "s_at_10"], found)]


def compare(oracle, embeddings, labels, task, a):
    x, y = normalize(np.load(embeddings).astype(np.float32)), np.load(labels)
    # Ours runs before and after theirs; the slower of the two counts.
    runs = [ours(a.blnn, embeddings, labels, task, a)]
    found, seconds = theirs(oracle, x, y, task, a)
    runs.append(ours(a.blnn, embeddings, labels, task, a))
    mine = max(r["seconds"][task] for r in runs)
    bar, goal = SPEED[task]
    ok = seconds / mine >= bar
    print(f"{embeddings} {task}: {mine:.2f} s against {seconds:.1f} s, {seconds / mine:.1f} times "
          f"(bar {bar}, goal {goal})", flush=True)
    for name, gap, limit in differences(task, runs[0], found):
        ok &= gap <= limit
        print(f"  difference, {name}: {gap:.3f} points (bar {limit})", flush=True)
    return ok


def main():
    warnings.filterwarnings("ignore")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("blnn"); p.add_argument("oracle"); p.add_argument("files", nargs="+")
    p.add_argument("--splits", type=int, default=20); p.add_argument("--repeats", type=int, default=10)
    p.add_argument("--tasks", default="classify,cluster,similar")
    a = p.parse_args()
    spec = importlib.util.spec_from_file_location("oracle", a.oracle)
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    pairs = zip(a.files[::2], a.files[1::2])
    good = [compare(oracle, e, l, t, a) for e, l in pairs for t in a.tasks.split(",")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
