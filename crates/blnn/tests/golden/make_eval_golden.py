"""Writes the golden values of the evaluator's tests: scikit-learn's scores of two small data sets.

usage: make_eval_golden.py [FOLDER]      (default: eval/ beside this file)

plain  600 nodes, 16 dimensions, 4 overlapping classes
rare   240 nodes, 6 dimensions, 3 classes, the first with 5 members only: some folds have none of
       them, which exercises scikit-learn's constant predictor and the threshold it brings along

Made with scikit-learn 1.9.1 and numpy 2.4.6.
"""
import json
import pathlib
import sys
import warnings

import numpy as np
from sklearn import metrics
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import label_binarize, normalize

warnings.filterwarnings("ignore")
C_GRID = 2.0 ** np.arange(-10, 11)
SPLITS, REPEATS = 6, 3


def data(seed, sizes, width, noise):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = rng.normal(size=(len(sizes), width))
    return (centres[labels] + noise * rng.normal(size=(len(labels), width)) + 0.5).astype(np.float32), labels


def one_vs_rest(c=1.0):
    return OneVsRestClassifier(LogisticRegression(solver="liblinear", C=c))


def published_code(x, y):
    onehot = label_binarize(y, classes=np.unique(y))
    rng, scores, penalties = np.random.RandomState(1), [], []
    for _ in range(SPLITS):
        xa, xb, ya, yb = train_test_split(x, onehot, test_size=0.8, random_state=rng)
        folds = ShuffleSplit(n_splits=5, test_size=0.5, random_state=0)
        search = GridSearchCV(one_vs_rest(), {"estimator__C": C_GRID}, cv=folds).fit(xa, ya)
        scores.append(100 * np.mean(search.predict_proba(xb).argmax(1) == yb.argmax(1)))
        penalties.append(search.best_params_["estimator__C"])
    return scores, penalties


def by_validation(x, y, parts):
    scores, penalties = [], []
    onehot = label_binarize(y, classes=np.unique(y))
    for train, validation, test in parts:
        best = (-1.0, 0.0, 0.0)
        for c in C_GRID:
            model = one_vs_rest(c).fit(x[train], onehot[train])
            accuracy = lambda rows: np.mean(model.predict_proba(x[rows]).argmax(1) == y[rows])
            if accuracy(validation) > best[0]:
                best = (accuracy(validation), accuracy(test), c)
        scores.append(100 * best[1])
        penalties.append(best[2])
    return scores, penalties


def paper_parts(n):
    rng = np.random.RandomState(1)
    for _ in range(SPLITS):
        train, test = train_test_split(np.arange(n), test_size=0.8, random_state=rng)
        yield train[:len(train) // 2], train[len(train) // 2:], test


def mask_parts(n):
    rng = np.random.RandomState(7)
    test = np.sort(rng.permutation(n)[: n // 2])
    rest = np.setdiff1d(np.arange(n), test)
    for _ in range(3):
        order = rng.permutation(rest)
        yield np.sort(order[:60]), np.sort(order[60:120]), test


def cluster(x, y):
    nmi, homogeneity = [], []
    for seed in range(REPEATS):
        found = KMeans(len(np.unique(y)), n_init=10, random_state=seed).fit_predict(x)
        nmi.append(100 * metrics.normalized_mutual_info_score(y, found))
        homogeneity.append(100 * metrics.homogeneity_score(y, found))
    return nmi, homogeneity


def similar(x, y, k):
    s = x @ x.T
    np.fill_diagonal(s, -2)
    top = np.argsort(-s, axis=1, kind="stable")[:, :k]
    return 100 * np.mean(y[top] == y[:, None])


def compactness(x, y):
    x = x.astype(np.float64)
    inside = []
    for c in np.unique(y):
        s = x[y == c] @ x[y == c].T
        inside.append((s.sum() - np.trace(s)) / (len(s) * (len(s) - 1)))
    return np.mean(inside)


def expected(embeddings, y):
    x = normalize(embeddings)
    n = len(y)
    published, published_c = published_code(x, y)
    paper, paper_c = by_validation(x, y, paper_parts(n))
    masks = list(mask_parts(n))
    public, public_c = by_validation(x, y, masks)
    nmi, homogeneity = cluster(x, y)
    return {
        "published_code": published, "published_code_penalties": published_c,
        "paper": paper, "paper_penalties": paper_c,
        "public": public, "public_penalties": public_c,
        "train": [m[0].tolist() for m in masks], "validation": [m[1].tolist() for m in masks],
        "test": masks[0][2].tolist(),
        "nmi": nmi, "homogeneity": homogeneity,
        "s_at_5": similar(x, y, 5), "s_at_10": similar(x, y, 10), "compactness": compactness(x, y),
    }


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "eval")
    sets = {"plain": data(3, [250, 150, 120, 80], 16, 1.6), "rare": data(4, [5, 135, 100], 6, 1.0)}
    for name, (x, y) in sets.items():
        np.save(folder / f"{name}.npy", x)
        np.save(folder / f"{name}_labels.npy", y.astype(np.int64))
        (folder / f"{name}.json").write_text(json.dumps(expected(x, y)) + "\n")


if __name__ == "__main__":
    main()
