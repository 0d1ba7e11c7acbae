"""RF: random forests that label every vertex by its descriptors (Rodola, Rota Bulo, Windheuser, Vestner, Cremers 2014).

Every tree splits by thresholds of single descriptors. Information gain over thousands of labels is nearly flat at the
top of a tree, so that splits are chosen to make the embedding of the labels (positions or eigenfunctions of the
reference) vary little on either side; leaves keep histograms of labels, which are averaged over trees.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.correspondence.soft_map import SoftMap
from acnn.errors import InputError
from acnn.files import read_arrays, write_arrays
from acnn.methods.method import Method, Properties, TrainingData
from acnn.shapes.mesh import Mesh
from acnn.training.config import ForestSettings, RunConfig
from acnn.training.loop import StepReport
from acnn.training.prepared import Needs
from acnn.training.tasks import ShapeInputs
from acnn.types import FloatArray, IntArray

FORMAT = "acnn-forest-1"


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees in flat arrays, one after the other.

    Attributes
    ----------
    roots : (trees,) int array
        First node of every tree.
    feature : (nodes,) int array
        Descriptor that a node compares; -1 at leaves.
    threshold : (nodes,) float32 array
        Vertices whose descriptor is at most this go left.
    left, right : (nodes,) int array
        Children; at leaves `left` is the number of the leaf.
    leaf_start : (leaves + 1,) int array
        Where the labels of each leaf begin.
    leaf_labels : (entries,) int array
        Labels of the leaves.
    leaf_weights : (entries,) float array
        Their fractions of the training samples of the leaf.
    classes : int
        Vertices m of the reference.
    """

    roots: IntArray
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    leaf_start: IntArray
    leaf_labels: IntArray
    leaf_weights: FloatArray
    classes: int

    @property
    def parameter_count(self) -> int:
        """Learned numbers: thresholds and weights of leaves."""
        return int((self.feature >= 0).sum() + len(self.leaf_weights))

    def leaves(self, descriptors: FloatArray) -> IntArray:
        """(n, trees) leaf of every vertex in every tree."""
        values = np.ascontiguousarray(descriptors, np.float32)
        return _walk(values, self.roots, self.feature, self.threshold, self.left, self.right)

    def votes(self, descriptors: FloatArray) -> sp.csr_array:
        """(n, m) probabilities, the mean over trees of the histograms in the leaves."""
        leaves = self.leaves(descriptors)
        n, trees = leaves.shape
        histograms = sp.csr_array(
            (self.leaf_weights, self.leaf_labels.astype(np.int32), self.leaf_start),
            shape=(len(self.leaf_start) - 1, self.classes),
        )
        chosen = sp.csr_array(
            (np.full(n * trees, 1.0 / trees), leaves.ravel(), np.arange(0, n * trees + 1, trees)),
            shape=(n, histograms.shape[0]),
        )
        return sp.csr_array(chosen @ histograms)

    def soft_map(self, shape: ShapeInputs, reference: ShapeInputs, k: int = 16) -> SoftMap:
        """The k labels with most votes of every vertex of a shape."""
        votes = self.votes(np.asarray(shape.descriptors()))
        n, k = votes.shape[0], min(k, self.classes)
        vertices = np.zeros((n, k), np.int32)
        values = np.zeros((n, k), np.float32)
        _largest(votes.indptr, votes.indices, votes.data, vertices, values)
        return SoftMap(vertices, values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12), self.classes)

    def describe(self, shape: ShapeInputs) -> FloatArray | None:
        """None: labels were learned."""
        return None


def fit_forest(
    descriptors: FloatArray,
    labels: IntArray,
    embedding: FloatArray,
    settings: ForestSettings,
    seed: int = 0,
) -> Forest:
    """Grow a forest.

    Parameters
    ----------
    descriptors : (samples, p) array
        Of labelled vertices of all training shapes.
    labels : (samples,) int array
        Vertices of the reference.
    embedding : (m, d) array
        Of the vertices of the reference, by which splits are chosen.
    settings : ForestSettings
        Number of trees, size of leaves.
    seed : int
        Random seed.

    Raises
    ------
    InputError
        Where scikit-learn, which grows the trees, is not installed.
    """
    try:
        from sklearn.ensemble import ExtraTreesRegressor
    except ImportError as error:
        raise InputError("Growing a forest needs scikit-learn: pip install 'acnn[forest]'.") from error
    model = ExtraTreesRegressor(
        n_estimators=settings.trees,
        min_samples_leaf=settings.leaf,
        max_features=min(settings.features, descriptors.shape[1]),
        random_state=seed,
        n_jobs=-1,
    )
    values = np.ascontiguousarray(descriptors, np.float32)
    model.fit(values, embedding[labels])
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("feature", "threshold", "left", "right")}
    roots: list[int] = []
    starts: list[IntArray] = [np.zeros(1, np.int64)]
    kept_labels: list[IntArray] = []
    kept_weights: list[FloatArray] = []
    nodes = leaves = entries = 0
    for estimator in model.estimators_:
        tree = estimator.tree_
        is_leaf = tree.children_left < 0
        number = np.cumsum(is_leaf) - 1 + leaves
        parts["feature"].append(np.where(is_leaf, -1, tree.feature).astype(np.int16))
        parts["threshold"].append(_rounded_down(np.where(is_leaf, 0.0, tree.threshold)))
        parts["left"].append(np.where(is_leaf, number, tree.children_left + nodes).astype(np.int32))
        parts["right"].append(np.where(is_leaf, -1, tree.children_right + nodes).astype(np.int32))
        roots.append(nodes)
        own = number[tree.apply(values)] - leaves
        start, some, weights = _histograms(own, labels, int(is_leaf.sum()), settings.kept)
        starts.append(start[1:] + entries)
        kept_labels.append(some)
        kept_weights.append(weights)
        nodes, leaves, entries = nodes + tree.node_count, leaves + int(is_leaf.sum()), entries + len(some)
    return Forest(
        roots=np.array(roots, np.int32),
        **{name: np.concatenate(arrays) for name, arrays in parts.items()},
        leaf_start=np.concatenate(starts).astype(np.int32),
        leaf_labels=np.concatenate(kept_labels).astype(np.uint16 if len(embedding) <= 65536 else np.int32),
        leaf_weights=np.concatenate(kept_weights).astype(np.float32),
        classes=len(embedding),
    )


def _rounded_down(values: FloatArray) -> NDArray[np.float32]:
    """The largest float32 numbers that are not above some numbers: descriptors in float32 compare with both alike."""
    single = values.astype(np.float32)
    return np.where(single > values, np.nextafter(single, np.float32(-np.inf)), single)


def _histograms(leaf: IntArray, labels: IntArray, leaves: int, kept: int) -> tuple[IntArray, IntArray, FloatArray]:
    """The most frequent labels of every leaf: where each leaf begins, the labels and their fractions."""
    counts = sp.csr_array((np.ones(len(leaf)), (leaf, labels)), shape=(leaves, int(labels.max()) + 1))
    counts.sum_duplicates()
    row = np.repeat(np.arange(leaves), np.diff(counts.indptr))
    order = np.lexsort((counts.indices, -counts.data, row))  # ties go to the lower label
    rank = np.arange(len(order)) - counts.indptr[row[order]]
    chosen = order[rank < kept]
    row, weights = row[chosen], counts.data[chosen]
    total = np.bincount(row, weights=weights, minlength=leaves)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=leaves))]).astype(np.int64)
    return start, counts.indices[chosen], weights / total[row]


@compiled(nogil=True)
def _walk(
    values: NDArray[np.float32],
    roots: IntArray,
    feature: IntArray,
    threshold: FloatArray,
    left: IntArray,
    right: IntArray,
) -> IntArray:
    n, trees = len(values), len(roots)
    leaves = np.empty((n, trees), np.int32)
    for i in range(n):
        for t in range(trees):
            node = roots[t]
            while feature[node] >= 0:
                node = left[node] if values[i, feature[node]] <= threshold[node] else right[node]
            leaves[i, t] = left[node]
    return leaves


@compiled(nogil=True)
def _largest(
    start: IntArray, columns: IntArray, data: FloatArray, vertices: NDArray[np.int32], values: NDArray[np.float32]
) -> None:
    """The largest entries of sparse rows, descending, in place; rows with fewer repeat their first with weight 0."""
    k = vertices.shape[1]
    for i in range(len(start) - 1):
        order = np.argsort(-data[start[i] : start[i + 1]])
        for j in range(k):
            if j < len(order):
                vertices[i, j] = columns[start[i] + order[j]]
                values[i, j] = data[start[i] + order[j]]
            elif len(order) > 0:
                vertices[i, j] = vertices[i, 0]


def forest_needs(config: RunConfig) -> Needs:
    """Descriptors alone."""
    return Needs(config.descriptors, None, None)


def train_forest(
    data: TrainingData,
    config: RunConfig,
    folder: Path,
    resume: bool,
    report: StepReport | None,
    metadata: dict[str, Any],
) -> None:
    """Grow a forest on all labelled vertices of the training shapes, and save it."""
    began = time.perf_counter()
    features, labels = [], []
    for shape in data.shapes:
        known = shape.labels >= 0
        features.append(np.asarray(shape.descriptors())[known])
        labels.append(shape.labels[known])
    embedding = label_embedding(data.reference, config.forest.embedding)
    forest = fit_forest(np.concatenate(features), np.concatenate(labels), embedding, config.forest, config.train.seed)
    arrays = {name: getattr(forest, name) for name in _ARRAYS}
    about = {"format": FORMAT, "classes": forest.classes, "metadata": {"config": config.as_dict(), **metadata}}
    write_arrays(folder / "model.safetensors", arrays, about, durable=True)
    if report:
        seconds = time.perf_counter() - began
        report({"step": config.forest.trees, "steps": config.forest.trees, "seconds": seconds, "seconds_left": 0.0})


def label_embedding(reference: Mesh, count: int) -> FloatArray:
    """(m, d) positions of the reference's vertices, or its first `count` eigenfunctions over sqrt(lambda)."""
    if not count:
        return np.asarray(reference.vertices, float)
    from acnn.surface.spectra import surface_eigenpairs
    from acnn.surface.surface import surface_of

    values, functions = surface_eigenpairs(surface_of(reference), count + 1)
    return functions[:, 1:] / np.sqrt(np.maximum(values[1:], 1e-12))


def load_forest(path: Path) -> tuple[Forest, dict[str, Any]]:
    """A forest of a file, and its metadata.

    Raises
    ------
    InputError
        Where the file is damaged or something else.
    """
    arrays, about = read_arrays(path)
    try:
        if about["format"] != FORMAT:
            raise InputError(f"{path}: holds '{about['format']}', not a forest.")
        forest = Forest(**{name: arrays[name] for name in _ARRAYS}, classes=int(about["classes"]))
        metadata = dict(about["metadata"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: its metadata are damaged ({error!r}). Train it again.") from error
    _check_forest(path, forest)
    return forest, metadata


def _check_forest(path: Path, forest: Forest) -> None:
    """Raise InputError where walking the trees could leave them, or never end."""
    nodes, leaves = len(forest.feature), len(forest.leaf_start) - 1
    inner = forest.feature >= 0
    at = np.arange(nodes)
    valid = (
        all(len(getattr(forest, name)) == nodes for name in ("threshold", "left", "right"))
        and bool(((forest.roots >= 0) & (forest.roots < nodes)).all())
        # children come after their node, so that every walk ends
        and bool((forest.left[inner] > at[inner]).all() and (forest.right[inner] > at[inner]).all())
        and bool((forest.left[inner] < nodes).all() and (forest.right[inner] < nodes).all())
        and bool(((forest.left[~inner] >= 0) & (forest.left[~inner] < leaves)).all())
        and len(forest.leaf_labels) == len(forest.leaf_weights) == forest.leaf_start[-1]
        and bool((np.diff(forest.leaf_start) >= 0).all())
        and bool(((forest.leaf_labels >= 0) & (forest.leaf_labels < forest.classes)).all())
    )
    if not valid:
        raise InputError(f"{path}: the trees of the forest are damaged. Train it again.")


_ARRAYS = ("roots", "feature", "threshold", "left", "right", "leaf_start", "leaf_labels", "leaf_weights")

RF = Method(
    name="rf",
    title="random forest (Rodola et al. 2014)",
    properties=Properties("any", "any", True, "spectral", False, False, "correspondence"),
    presets={"labels": "rf-wks"},
    needs=forest_needs,
    train=train_forest,
    load=load_forest,
)
