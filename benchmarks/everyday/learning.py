"""Statistical learning as users write it: regression, classification, clustering and small neural networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def linear_regression(X, y, epochs=10, lr=0.1):
    """Weights and bias of least squares, by gradient descent over all samples."""
    n, d = X.shape
    w, b = np.zeros(d), 0.0
    for _ in range(epochs):
        gw, gb = np.zeros(d), 0.0
        for i in range(n):
            err = b - y[i]
            for j in range(d):
                err += w[j] * X[i, j]
            for j in range(d):
                gw[j] += err * X[i, j]
            gb += err
        w -= lr * gw / n
        b -= lr * gb / n
    return w, b


def sigmoid(z):
    """The logistic function, without overflow."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


def logistic_regression(X, y, w, epochs=5, lr=0.5, l2=1e-3):
    """Logistic regression over all samples with an L2 penalty; changes w and returns the loss of each epoch."""
    losses = np.zeros(epochs)
    for epoch in range(epochs):
        grad = np.zeros(w.shape[0])
        for i in range(len(y)):
            p = sigmoid(np.dot(X[i], w))
            grad += (p - y[i]) * X[i]
            losses[epoch] -= math.log(p + 1e-12) if y[i] == 1 else math.log(1 - p + 1e-12)
        w -= lr * (grad / len(y) + l2 * w)
    return losses / len(y)


def logistic_sgd(X, y, w, epochs=3, lr=0.5):
    """Logistic regression with a step after each sample and a falling rate; changes w and returns it."""
    t = 0
    for _ in range(epochs):
        for x, target in zip(X, y):  # noqa: B905
            t += 1
            w += lr / math.sqrt(t) * (target - sigmoid(x @ w)) * x
    return w


def softmax_regression(X, labels, n_classes=4, epochs=5, lr=0.5):
    """Weights of a multi-class linear classifier by gradient descent on the cross-entropy."""
    n, d = X.shape
    W = np.zeros((n_classes, d))
    for _ in range(epochs):
        grad = np.zeros_like(W)
        for i in range(n):
            scores = W @ X[i]
            p = np.exp(scores - scores.max())
            p /= p.sum()
            p[labels[i]] -= 1.0
            grad += np.outer(p, X[i])
        W -= lr / n * grad
    return W


def perceptron(X, y, w, max_epochs=8):
    """Changes w at each mistake until an epoch has none; returns the mistakes of each epoch."""
    mistakes = np.zeros(max_epochs, dtype=np.int64)
    for epoch in range(max_epochs):
        for i in range(X.shape[0]):
            sign = 1 if y[i] == 1 else -1
            if sign * np.dot(w, X[i]) <= 0:
                w += sign * X[i]
                mistakes[epoch] += 1
        if mistakes[epoch] == 0:
            break
    return mistakes


def svm_sgd(X, y, w, lam=0.01, seed=1):
    """A linear SVM by steps on single samples, drawn by a small generator (Pegasos); returns the violations."""
    violations = 0
    for t in range(len(y)):
        seed = (1103515245 * seed + 12345) % 2147483648
        i = seed // 8 % len(y)
        rate = 1.0 / (lam * (t + 1))
        sign = 2.0 * y[i] - 1.0
        margin = 0.0
        for j in range(len(w)):
            margin += sign * w[j] * X[i, j]
        w *= 1.0 - rate * lam
        if margin < 1.0:
            violations += 1
            for j in range(len(w)):
                w[j] += rate * sign * X[i, j]
    return violations


def ridge_coordinate_descent(X, y, lam=1.0, sweeps=5):
    """Ridge regression, one coefficient at a time with the residual kept up to date."""
    n, d = X.shape
    w = np.zeros(d)
    residual = y.copy()
    for _ in range(sweeps):
        for j in range(d):
            rho, norm = -lam * w[j], lam
            for i in range(n):
                rho += X[i, j] * residual[i]
                norm += X[i, j] * X[i, j]
            w[j] += rho / norm
            for i in range(n):
                residual[i] -= rho / norm * X[i, j]
    return w, residual


def lasso_coordinate_descent(X, y, alpha=0.1, sweeps=5):
    """Lasso regression, one coefficient at a time, with column expressions and a soft threshold."""
    n, d = X.shape
    w = np.zeros(d)
    r = y.copy()
    scale = (X**2).sum(axis=0)
    for _ in range(sweeps):
        for j in range(d):
            r += X[:, j] * w[j]
            rho = X[:, j] @ r
            w[j] = np.sign(rho) * max(abs(rho) - alpha * n, 0.0) / scale[j]
            r -= X[:, j] * w[j]
    return w


def cross_validated_ridge(X, y, folds=5, lam=1.0):
    """The mean squared error of ridge regression on each fold that it was not fitted on."""
    n, d = X.shape
    errors = np.zeros(folds)
    for f in range(folds):
        test = np.arange(n) % folds == f
        A = X[~test]
        w = np.linalg.solve(A.T @ A + lam * np.eye(d), A.T @ y[~test])
        errors[f] = np.mean((y[test] - X[test] @ w) ** 2)
    return errors


def kmeans(X, centers, max_iter=5):
    """Lloyd's k-means from the given centers, which are changed; returns the label of each sample."""
    labels = np.full(len(X), -1)
    for _ in range(max_iter):
        changed = False
        sums, counts = np.zeros_like(centers), np.zeros(len(centers))
        for i in range(len(X)):
            best, best_dist = 0, np.inf
            for c in range(len(centers)):
                dist = 0.0
                for j in range(X.shape[1]):
                    dist += (X[i, j] - centers[c, j]) ** 2
                if dist < best_dist:
                    best, best_dist = c, dist
            changed = changed or labels[i] != best
            labels[i] = best
            counts[best] += 1
            sums[best] += X[i]
        if not changed:
            break
        for c in range(len(centers)):
            if counts[c] > 0:
                centers[c] = sums[c] / counts[c]
    return labels


def farthest_first(X, k=12):
    """Chooses k samples as centers, each the farthest from those chosen before; returns them and the radius."""
    chosen = np.zeros(k, dtype=np.int64)
    nearest = np.full(len(X), np.inf)
    for c in range(k):
        chosen[c] = np.argmax(nearest)
        for i, x in enumerate(X):
            nearest[i] = min(nearest[i], np.sum((x - X[chosen[c]]) ** 2))
    return chosen, math.sqrt(nearest.max())


def gaussian_mixture(X, means, variances, weights, iterations=2):
    """EM of a mixture of normal distributions, in place; returns the log-likelihood of each iteration."""
    resp = np.zeros((len(X), len(weights)))
    history = np.zeros(iterations)
    for it in range(iterations):
        for i in range(len(X)):
            for c in range(len(weights)):
                dist = (X[i] - means[c]) ** 2 / variances[c] + np.log(2 * np.pi * variances[c])
                resp[i, c] = math.log(weights[c]) - 0.5 * dist.sum()
            top = np.max(resp[i])
            resp[i] = np.exp(resp[i] - top)
            total = resp[i].sum()
            resp[i] /= total
            history[it] += top + math.log(total)
        for c in range(len(weights)):
            mass = resp[:, c].sum()
            weights[c] = mass / len(X)
            means[c] = resp[:, c] @ X / mass
            variances[c] = resp[:, c] @ (X - means[c]) ** 2 / mass + 1e-6
    return history


def gaussian_bayes_predict(X, means, variances, priors):
    """The most probable class of each sample under normal distributions with diagonal covariances."""
    pred = np.zeros(len(X), dtype=np.int64)
    offset = np.log(priors) - 0.5 * np.log(variances).sum(axis=1)
    for i, x in enumerate(X):
        pred[i] = np.argmax(offset - 0.5 * ((x - means) ** 2 / variances).sum(axis=1))
    return pred


def gaussian_bayes_fit(X, labels, n_classes=4):
    """The count, and the mean and variance of each feature, of each class."""
    n, d = X.shape
    count = np.zeros((n_classes, 1))
    mean, square = np.zeros((n_classes, d)), np.zeros((n_classes, d))
    for i in range(n):
        c = labels[i]
        count[c] += 1
        for j in range(d):
            mean[c, j] += X[i, j]
            square[c, j] += X[i, j] ** 2
    mean /= count
    return count, mean, square / count - mean**2


def text_bayes_fit(tokens, starts, labels, vocabulary, n_classes=3, smoothing=1.0):
    """Log probabilities of words by class from documents that lie one after another in `tokens`."""
    counts = np.full((n_classes, vocabulary), smoothing)
    for doc in range(len(starts) - 1):
        for word in tokens[starts[doc] : starts[doc + 1]]:
            counts[labels[doc], word] += 1
    for c in range(n_classes):
        counts[c] = np.log(counts[c] / counts[c].sum())
    return counts


def knn_classify(X, labels, k=5, n_classes=4):
    """The majority label among the k nearest other samples of each sample."""
    result = np.empty(len(X), dtype=np.int64)
    for q in range(len(X)):
        near, who = np.full(k, np.inf), np.zeros(k, dtype=np.int64)
        for i in range(len(X)):
            dist = 0.0 if i != q else np.inf
            for j in range(X.shape[1]):
                dist += (X[i, j] - X[q, j]) ** 2
            p = k
            while p > 0 and near[p - 1] > dist:
                p -= 1
                if p < k - 1:
                    near[p + 1], who[p + 1] = near[p], who[p]
                near[p], who[p] = dist, i
        votes = np.zeros(n_classes)
        for i in who:
            votes[labels[i]] += 1
        result[q] = votes.argmax()
    return result


def knn_regress(X, values, k=5):
    """The mean of the k nearest values of each sample, its own left out, weighted by inverse distance."""
    result = np.zeros(len(X))
    for q, x in enumerate(X):
        dist = np.sqrt(((X - x) ** 2).sum(axis=1))
        nearest = np.argsort(dist)[1 : k + 1]
        w = 1.0 / (dist[nearest] + 1e-9)
        result[q] = (w * values[nearest]).sum() / w.sum()
    return result


def gini_stump(X, y):
    """The feature and threshold that split two classes with the least Gini impurity."""
    n, d = X.shape
    ones = y.sum()
    best, feature, threshold = np.inf, -1, 0.0
    for f in range(d):
        order = np.argsort(X[:, f])
        left = 0
        for pos in range(1, n):
            left += y[order[pos - 1]]
            a, b = left / pos, (ones - left) / (n - pos)
            impurity = pos * a * (1 - a) + (n - pos) * b * (1 - b)
            low, high = X[order[pos - 1], f], X[order[pos], f]
            if low < high and impurity < best:
                best, feature, threshold = impurity, f, 0.5 * (low + high)
    return feature, threshold, 2 * best / n


def adaboost(X, y, rounds=3, n_cuts=8):
    """AdaBoost of decision stumps; each row is a stump's feature, cut, direction and weight."""
    n, d = X.shape
    weights = np.full(n, 1.0 / n)
    stumps = np.zeros((rounds, 4))
    for stump in stumps:
        best = np.inf
        for f in range(d):
            for cut in np.linspace(X[:, f].min(), X[:, f].max(), n_cuts):
                err = 0.0
                for i in range(n):
                    if (X[i, f] > cut) != (y[i] == 1):
                        err += weights[i]
                if min(err, 1 - err) < best:
                    best = min(err, 1 - err)
                    stump[0], stump[1], stump[2] = f, cut, 1 if err < 0.5 else -1
        stump[3] = 0.5 * np.log((1 - best + 1e-10) / (best + 1e-10))
        right = (X[:, int(stump[0])] > stump[1]) == (y == 1)
        weights *= np.exp(np.where(right, -1.0, 1.0) * stump[2] * stump[3])
        weights /= weights.sum()
    return stumps


def tree_predict(X, feature, threshold, left, right, value):
    """The value of the leaf that each sample reaches in a decision tree held in arrays."""
    out = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        node = 0
        while feature[node] >= 0:
            node = left[node] if X[i, feature[node]] <= threshold[node] else right[node]
        out[i] = value[node]
    return out


def roc_curve(truth):
    """The counts of true and false positives after each sample, from truths in order of falling score, and the area."""
    tps, fps = np.zeros(len(truth), dtype=np.int64), np.zeros(len(truth), dtype=np.int64)
    tp = fp = area = 0
    for i in range(len(truth)):
        if truth[i]:
            tp += 1
        else:
            fp += 1
            area += tp
        tps[i], fps[i] = tp, fp
    return tps, fps, area / (tp * fp)


def mlp_minibatch(X, y, W1, b1, w2, b2=0.0, batch=256, lr=0.05):
    """One epoch of a network with one hidden layer of rectifiers, in minibatches; returns the mean loss."""
    loss = 0.0
    for start in range(0, len(X), batch):
        xb, yb = X[start : start + batch], y[start : start + batch]
        hidden = np.maximum(xb @ W1 + b1, 0.0)
        err = hidden @ w2 + b2 - yb
        loss += np.sum(err**2)
        back = np.outer(err, w2) * (hidden > 0) / len(xb)
        w2 -= lr * (err @ hidden) / len(xb)
        b2 -= lr * err.mean()
        W1 -= lr * (xb.T @ back)
        b1 -= lr * back.sum(axis=0)
    return loss / len(X), b2


def mlp_gradient(X, y, W1, b1, w2, b2=0.0):
    """The gradient of the squared error of a network with one hidden tanh layer, over all samples."""
    d, h = W1.shape
    gW1, gb1, gw2, loss = np.zeros((d, h)), np.zeros(h), np.zeros(h), 0.0
    for i, x in enumerate(X):
        a = b1.copy()
        for j in range(d):
            for k in range(h):
                a[k] += x[j] * W1[j, k]
        a = np.tanh(a)
        err = a @ w2 + b2 - y[i]
        loss += err * err
        gw2 += err * a
        for k in range(h):
            delta = err * w2[k] * (1.0 - a[k] ** 2)
            gb1[k] += delta
            for j in range(d):
                gW1[j, k] += delta * x[j]
    return gW1, gb1, gw2, loss / len(X)


def mlp_online(X, y, W1, b1, w2, b2=0.0, lr=0.01):
    """One epoch of back-propagation with a step after each sample; returns the mean loss."""
    loss = 0.0
    for i in range(len(X)):
        a = np.tanh(X[i] @ W1 + b1)
        err = np.dot(a, w2) + b2 - y[i]
        loss += err**2
        delta = err * w2 * (1 - a * a)
        w2 -= lr * err * a
        b2 -= lr * err
        W1 -= lr * np.outer(X[i], delta)
        b1 -= lr * delta
    return loss / len(X)


def _regression_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 10))
    return X, X @ rng.normal(size=10) + 0.1 * rng.normal(size=n)


def _binary_arguments(n: int) -> tuple[Any, ...]:
    X, y = _regression_arguments(n)
    return X, (y > 0).astype(np.int64), np.zeros(10)


def _classes_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    labels = rng.integers(0, 4, n)
    return rng.normal(size=(n, 8)) + 2.0 * rng.normal(size=(4, 8))[labels], labels


def _mixture_arguments(n: int) -> tuple[Any, ...]:
    X, _ = _classes_arguments(n)
    return X, X[:4] + 0.5, np.full((4, 8), 2.0), np.full(4, 0.25)


def _document_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    starts = np.concatenate(([0], np.cumsum(rng.integers(20, 180, n))))
    tokens = (2000 * rng.random(starts[-1]) ** 3).astype(np.int64)
    return tokens, starts, rng.integers(0, 3, n), 2000


def _tree_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    nodes, inner = 511, 255
    feature = np.where(np.arange(nodes) < inner, rng.integers(0, 8, nodes), -1)
    left = 2 * np.arange(nodes) + 1
    return rng.normal(size=(n, 8)), feature, 0.5 * rng.normal(size=nodes), left, left + 1, rng.random(nodes)


def _network_arguments(n: int, d: int = 12, h: int = 16) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]), rng.normal(size=(d, h)) / d, np.zeros(h), rng.normal(size=h) / h


_EPOCH = "Within an epoch the weights stay as they are and the samples only add to the gradient."
_STEP = "Every sample's step uses the weights that the step before has changed."
_COLUMN = "The coefficients follow one another, but each is a sum over independent samples and an update of them."
_ITERATION = "Within an iteration the samples are handled independently and only add to the new centers."
_CENTERS = "The centers follow one another, but nearly all of the work updates each sample's distance by itself."
_ALONE = "The samples or folds are independent."
_COUNTS = "The samples or words only add to counts and sums of their class."
_STUMPS = "The features' stumps are independent and the best is a minimum with its position, in each round."
_RUNNING = "The counts of true and false positives are running sums, and the area adds up one of them."
_BATCH = "The batches follow one another, but the rows of a batch only add to its gradients."

CASES: tuple[Case, ...] = (
    Case("linear regression", linear_regression, _regression_arguments, 300, 40_000, Nature.PARALLEL, _EPOCH),
    Case("logistic regression", logistic_regression, _binary_arguments, 500, 25_000, Nature.PARALLEL, _EPOCH),
    Case("logistic regression", logistic_sgd, _binary_arguments, 800, 40_000, Nature.SERIAL, _STEP),
    Case("softmax regression", softmax_regression, _classes_arguments, 200, 10_000, Nature.PARALLEL, _EPOCH),
    Case("perceptron", perceptron, _binary_arguments, 1000, 100_000, Nature.SERIAL, _STEP),
    Case("support vector machine", svm_sgd, _binary_arguments, 2000, 200_000, Nature.SERIAL, _STEP),
    Case("ridge regression", ridge_coordinate_descent, _regression_arguments, 600, 80_000, Nature.PARALLEL, _COLUMN),
    Case("lasso", lasso_coordinate_descent, _regression_arguments, 20_000, 40_000, Nature.PARALLEL, _COLUMN),
    Case("cross-validation", cross_validated_ridge, _regression_arguments, 30_000, 60_000, Nature.PARALLEL, _ALONE),
    Case("k-means", kmeans, lambda n: _mixture_arguments(n)[:2], 200, 80_000, Nature.PARALLEL, _ITERATION),
    Case("k-means", farthest_first, lambda n: _mixture_arguments(n)[:1], 300, 50_000, Nature.PARALLEL, _CENTERS),
    Case("Gaussian mixture", gaussian_mixture, _mixture_arguments, 200, 20_000, Nature.PARALLEL, _ITERATION),
    Case("naive Bayes", gaussian_bayes_predict, _mixture_arguments, 1500, 60_000, Nature.PARALLEL, _ALONE),
    Case("naive Bayes", gaussian_bayes_fit, _classes_arguments, 1500, 800_000, Nature.PARALLEL, _COUNTS),
    Case("naive Bayes", text_bayes_fit, _document_arguments, 400, 120_000, Nature.PARALLEL, _COUNTS),
    Case("k-nearest neighbours", knn_classify, _classes_arguments, 60, 2000, Nature.PARALLEL, _ALONE),
    Case("k-nearest neighbours", knn_regress, _regression_arguments, 300, 600, Nature.PARALLEL, _ALONE),
    Case("decision stump", gini_stump, lambda n: _binary_arguments(n)[:2], 1000, 30_000, Nature.PARALLEL, _STUMPS),
    Case("AdaBoost", adaboost, lambda n: _binary_arguments(n)[:2], 80, 10_000, Nature.PARALLEL, _STUMPS),
    Case("decision tree", tree_predict, _tree_arguments, 4000, 300_000, Nature.PARALLEL, _ALONE),
    Case("ROC curve", roc_curve, lambda n: (np.arange(n) ** 2 % 11 < 5,), 80_000, 1_500_000, Nature.SCAN, _RUNNING),
    Case("neural net", mlp_minibatch, lambda n: _network_arguments(n, 64, 32), 20_000, 30_000, Nature.PARALLEL, _BATCH),
    Case("neural net", mlp_gradient, _network_arguments, 100, 10_000, Nature.PARALLEL, _EPOCH),
    Case("neural net", mlp_online, _network_arguments, 1000, 20_000, Nature.SERIAL, _STEP),
)
