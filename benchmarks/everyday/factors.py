"""Factorizations, embeddings, topics, rankings and recommendations, as users write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def factorize_sgd(users, items, ratings, W, H, lr=0.02, reg=0.05):
    """An epoch of matrix factorization by a step after each rating; changes W and H and returns the error."""
    total = 0.0
    for n in range(len(ratings)):
        u, i = users[n], items[n]
        err = ratings[n] - np.dot(W[u], H[i])
        total += err**2
        step = lr * (err * H[i] - reg * W[u])
        H[i] += lr * (err * W[u] - reg * H[i])
        W[u] += step
    return math.sqrt(total / len(ratings))


def factorize_biased(users, items, ratings, W, H, lr=0.02, reg=0.05):
    """An epoch of factorization with user and item biases, written out by factor; returns the biases."""
    mean = ratings.mean()
    bu, bi = np.zeros(len(W)), np.zeros(len(H))
    for u, i, r in zip(users, items, ratings):  # noqa: B905
        err = r - mean - bu[u] - bi[i]
        for f in range(W.shape[1]):
            err -= W[u, f] * H[i, f]
        bu[u] += lr * (err - reg * bu[u])
        bi[i] += lr * (err - reg * bi[i])
        for f in range(W.shape[1]):
            old = W[u, f]
            W[u, f] += lr * (err * H[i, f] - reg * old)
            H[i, f] += lr * (err * old - reg * H[i, f])
    return bu, bi


def als_half_step(starts, items, ratings, W, H, reg=0.1):
    """Least squares for the factors of every user, with the factors of the items fixed."""
    k = H.shape[1]
    for u in range(len(starts) - 1):
        A = reg * np.eye(k)
        b = np.zeros(k)
        for p in range(starts[u], starts[u + 1]):
            h = H[items[p]]
            A += np.outer(h, h)
            b += ratings[p] * h
        W[u] = np.linalg.solve(A, b)


def rating_errors(users, items, ratings, W, H, low=-2.0, high=2.0):
    """The root mean square and the mean absolute error of clipped predictions, and the worst rating."""
    square = absolute = 0.0
    worst, where = -1.0, -1
    for n in range(len(ratings)):
        pred = 0.0
        for f in range(W.shape[1]):
            pred += W[users[n], f] * H[items[n], f]
        err = abs(min(max(pred, low), high) - ratings[n])
        square += err * err
        absolute += err
        if err > worst:
            worst, where = err, n
    return math.sqrt(square / len(ratings)), absolute / len(ratings), where


def slope_one(starts, items, ratings, n_items):
    """The mean difference of the ratings of each two items over the users who have rated both."""
    diff = np.zeros((n_items, n_items))
    freq = np.zeros((n_items, n_items), dtype=np.int64)
    for u in range(len(starts) - 1):
        for a in range(starts[u], starts[u + 1]):
            for b in range(starts[u], starts[u + 1]):
                diff[items[a], items[b]] += ratings[a] - ratings[b]
                freq[items[a], items[b]] += 1
    return diff / np.maximum(freq, 1), freq


def item_similarity(R):
    """The cosine similarity of each two columns of a rating matrix; both halves are written."""
    n_items = R.shape[1]
    norms = np.zeros(n_items)
    for i in range(n_items):
        norms[i] = np.linalg.norm(R[:, i])
    S = np.eye(n_items)
    for i in range(n_items):
        for j in range(i):
            dot = 0.0
            for row in R:
                dot += row[i] * row[j]
            S[i, j] = S[j, i] = dot / (norms[i] * norms[j] + 1e-12)
    return S


def ndcg(scores, relevance, k=10):
    """The mean normalized discounted gain of the k best scores of each user."""
    total = 0.0
    for u in range(scores.shape[0]):
        order = np.argsort(-scores[u])[:k]
        ideal = -np.sort(-relevance[u])[:k]
        gain = best = 0.0
        for rank in range(k):
            gain += relevance[u, order[rank]] / math.log2(rank + 2)
            best += ideal[rank] / math.log2(rank + 2)
        if best > 0:
            total += gain / best
    return total / len(scores)


def interpolated_precision(hits):
    """The best precision at each rank or after it, from a ranked list of hits."""
    found = 0
    precision = np.zeros(len(hits))
    for i, hit in enumerate(hits):
        found += hit
        precision[i] = found / (i + 1)
    for i in reversed(range(len(hits) - 1)):
        precision[i] = max(precision[i], precision[i + 1])
    return precision


def word2vec(centers, contexts, negatives, V, U, lr=0.05):
    """An epoch of skip-gram with negative sampling; changes both embeddings and returns the mean loss."""
    loss = 0.0
    for n in range(len(centers)):
        v = V[centers[n]]
        change = np.zeros(V.shape[1])
        for m in range(-1, negatives.shape[1]):
            word = contexts[n] if m < 0 else negatives[n, m]
            p = 1.0 / (1.0 + np.exp(-np.dot(v, U[word])))
            g = (1.0 if m < 0 else 0.0) - p
            loss -= math.log(1.0 - abs(g) + 1e-12)
            change += g * U[word]
            U[word] += lr * g * v
        v += lr * change
    return loss / len(centers)


def skipgram_pairs(tokens, draws, threshold=0.002, window=2):
    """Drops frequent words at random, then lists the pairs of words near each other; returns their number too."""
    share = np.bincount(tokens) / len(tokens)
    kept = np.zeros_like(tokens)
    m = 0
    for t, word in enumerate(tokens):
        if draws[t] < math.sqrt(threshold / share[word]):
            kept[m] = word
            m += 1
    pairs = np.zeros((2 * window * m, 2), dtype=np.int64)
    count = 0
    for t in range(m):
        for s in range(max(0, t - window), min(m, t + window + 1)):
            if kept[s] != kept[t]:
                pairs[count, 0], pairs[count, 1] = kept[t], kept[s]
                count += 1
    return pairs, count


def cooccurrence(tokens, window=4):
    """Counts of words near each other, weighted by one over their distance, among the 500 most frequent."""
    C = np.zeros((500, 500))
    for t in range(len(tokens)):
        for s in range(max(0, t - window), t):
            a, b = tokens[s], tokens[t]
            if a < 500 and b < 500:
                C[a, b] += 1.0 / (t - s)
                C[b, a] += 1.0 / (t - s)
    return C


def first_near_duplicate(E, limit=1e-6):
    """The first two rows that are nearly the same, or (-1, -1)."""
    for i in range(len(E)):
        for j in range(i):
            dist = 0.0
            for f in range(E.shape[1]):
                dist += (E[i, f] - E[j, f]) ** 2
                if dist > limit:
                    break
            if dist <= limit:
                return j, i
    return -1, -1


def lda_gibbs(docs, words, topics, n_docs, vocabulary, draws, k=8, alpha=0.1, beta=0.01):
    """Counts topics by document and word, then draws each token's topic anew given all the others."""
    by_doc, by_word, totals = np.zeros((n_docs, k)), np.zeros((vocabulary, k)), np.zeros(k)
    for d, w, z in zip(docs, words, topics):  # noqa: B905
        by_doc[d, z] += 1
        by_word[w, z] += 1
        totals[z] += 1
    for t in range(len(words)):
        d, w, z = docs[t], words[t], topics[t]
        by_doc[d, z] -= 1
        by_word[w, z] -= 1
        totals[z] -= 1
        p = np.cumsum((by_doc[d] + alpha) * (by_word[w] + beta) / (totals + vocabulary * beta))
        z = min(np.searchsorted(p, draws[t] * p[-1]), k - 1)
        topics[t] = z
        by_doc[d, z] += 1
        by_word[w, z] += 1
        totals[z] += 1
    return totals


def topic_counts(docs, words, topics, n_docs, vocabulary, k=8):
    """How often each topic occurs in each document and with each word, and the entropy of each document."""
    by_doc = np.zeros((n_docs, k), dtype=np.int64)
    by_word = np.zeros((vocabulary, k), dtype=np.int64)
    for t in range(len(topics)):
        by_doc[docs[t], topics[t]] += 1
        by_word[words[t], topics[t]] += 1
    entropy = np.zeros(n_docs)
    for d in range(n_docs):
        total = by_doc[d].sum()
        for count in by_doc[d]:
            if count > 0:
                entropy[d] -= count / total * math.log(count / total)
    return by_doc, by_word, entropy


def plsa(docs, words, topics, n_docs, vocabulary, k=8, iterations=2):
    """Probabilistic latent semantic analysis by EM: topics of documents and words of topics."""
    theta = np.full((n_docs, k), 1.0 / k)
    phi = np.full((vocabulary, k), 1.0 / vocabulary)
    for t in range(len(words)):
        phi[words[t], topics[t]] += 1.0
    for _ in range(iterations):
        new_theta, new_phi = np.zeros_like(theta), np.zeros_like(phi)
        for t in range(len(words)):
            p = theta[docs[t]] * phi[words[t]]
            p /= p.sum()
            new_theta[docs[t]] += p
            new_phi[words[t]] += p
        theta, phi = new_theta, new_phi / new_phi.sum(axis=0)
    return theta, phi


def pagerank(starts, sources, out_degree, damping=0.85, max_iter=10, tol=1e-10):
    """The rank of each page from the pages that link to it, by power iteration."""
    n = len(out_degree)
    rank = np.full(n, 1.0 / n)
    new = np.empty(n)
    for _ in range(max_iter):
        dangling = rank[out_degree == 0].sum()
        change = 0.0
        for page in range(n):
            total = dangling / n
            for e in range(starts[page], starts[page + 1]):
                total += rank[sources[e]] / out_degree[sources[e]]
            new[page] = (1.0 - damping) / n + damping * total
            change += abs(new[page] - rank[page])
        rank, new = new, rank
        if change < tol:
            break
    return rank


def tsne_gradient(Y, P):
    """The forces of t-SNE on a map of points in the plane, and the sum of the weights."""
    n = len(Y)
    q = np.zeros((n, n))
    z = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                q[i, j] = 1.0 / (1.0 + (Y[i, 0] - Y[j, 0]) ** 2 + (Y[i, 1] - Y[j, 1]) ** 2)
                z += q[i, j]
    force = np.zeros((n, 2))
    for i in range(n):
        for j in range(n):
            pull = 4.0 * (P[i, j] - q[i, j] / z) * q[i, j]
            force[i, 0] += pull * (Y[i, 0] - Y[j, 0])
            force[i, 1] += pull * (Y[i, 1] - Y[j, 1])
    return force, z


def sammon(D, Y, steps=2, lr=0.3):
    """Moves points of the plane so that their distances come nearer to D; returns the stress before each step."""
    stress = np.zeros(steps)
    for step in range(steps):
        force = np.zeros_like(Y)
        for i in range(len(Y)):
            for j in range(i + 1, len(Y)):
                delta = Y[i] - Y[j]
                dist = np.sqrt(np.sum(delta**2)) + 1e-9
                off = (D[i, j] - dist) / (D[i, j] + 1e-9)
                stress[step] += off * (D[i, j] - dist)
                force[i] += off / dist * delta
                force[j] -= off / dist * delta
        Y += lr / len(Y) * force
    return stress


def perplexity_rows(D, perplexity=15.0, tries=20):
    """The neighbour probabilities of t-SNE: for each row, a bandwidth found by bisection."""
    n = len(D)
    P = np.zeros((n, n))
    for i in range(n):
        low, high, beta = 0.0, np.inf, 1.0
        for _ in range(tries):
            p = np.exp(-(D[i] ** 2) * beta)
            p[i] = 0.0
            total = p.sum() + 1e-300
            entropy = math.log(total) + beta * np.dot(D[i] ** 2, p) / total
            P[i] = p / total
            if abs(entropy - math.log(perplexity)) < 1e-5:
                break
            if entropy > math.log(perplexity):
                low, beta = beta, 2 * beta if high == np.inf else (beta + high) / 2
            else:
                high, beta = beta, (beta + low) / 2
    return P


def pca_power(X, components=2, iterations=5):
    """Principal components of centered rows by power iteration, each orthogonal to those before it."""
    d = X.shape[1]
    V = np.zeros((components, d))
    for c in range(components):
        v = np.ones(d) / math.sqrt(d)
        for _ in range(iterations):
            s = np.zeros(d)
            for x in X:
                s += np.dot(x, v) * x
            for b in range(c):
                s -= np.dot(s, V[b]) * V[b]
            v = s / np.linalg.norm(s)
        V[c] = v
    return V


def oja(X, lr=0.001):
    """The first principal component by a step after each row (Oja's rule)."""
    w = np.ones(X.shape[1]) / math.sqrt(X.shape[1])
    for x in X:
        y = x @ w
        w += lr * y * (x - y * w)
    return w


def best_split(sums, counts):
    """The feature and bin that split the gradients with the greatest gain, and the mean on both sides."""
    best, feature, cut, left, right = -1.0, 0, 0, 0.0, 0.0
    for f in range(sums.shape[0]):
        total, n = sums[f].sum(), counts[f].sum()
        s, m = 0.0, 0
        for b in range(sums.shape[1] - 1):
            s += sums[f, b]
            m += counts[f, b]
            if m == 0 or m == n:
                continue
            gain = s * s / m + (total - s) ** 2 / (n - m)
            if gain > best:
                best, feature, cut, left, right = gain, f, b, s / m, (total - s) / (n - m)
    return feature, cut, left, right


def boost_histograms(bins, y, rounds=3, n_bins=32, lr=0.3):
    """Gradient boosting of stumps over binned features; returns predictions and the loss of each round."""
    n, d = bins.shape
    pred = np.full(n, y.mean())
    losses = np.zeros(rounds)
    for r in range(rounds):
        sums, counts = np.zeros((d, n_bins)), np.zeros((d, n_bins), dtype=np.int64)
        for i in range(n):
            for f in range(d):
                sums[f, bins[i, f]] += y[i] - pred[i]
                counts[f, bins[i, f]] += 1
        feature, cut, left, right = best_split(sums, counts)
        for i in range(n):
            pred[i] += lr * (left if bins[i, feature] <= cut else right)
        losses[r] = np.mean((pred - y) ** 2)
    return pred, losses


def _rating_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    n_users, n_items = n // 20 + 10, n // 40 + 10
    W, H = 0.3 * rng.normal(size=(n_users, 8)), 0.3 * rng.normal(size=(n_items, 8))
    return rng.integers(0, n_users, n), rng.integers(0, n_items, n), rng.normal(size=n), W, H


def _user_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    starts = np.concatenate(([0], np.cumsum(rng.integers(5, 36, n))))
    m = starts[-1]
    return starts, rng.integers(0, 300, m), rng.normal(size=m), np.zeros((n, 8)), rng.normal(size=(300, 8))


def _score_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.random((n, 40)), rng.random((n, 40))


def _pair_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    v = n // 2 + 20
    words = rng.integers(0, v, (n, 7))
    return words[:, 0].copy(), words[:, 1].copy(), words[:, 2:].copy(), rng.random((v, 16)) - 0.5, np.zeros((v, 16))


def _text_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return (2000 * rng.random(n) ** 3).astype(np.int64), rng.random(n)


def _corpus_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    words, draws = _text_arguments(n)
    return np.arange(n) // 50, words, rng.integers(0, 8, n), n // 50 + 1, 2000, draws


def _link_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    starts = np.concatenate(([0], np.cumsum(rng.integers(0, 20, n))))
    sources = rng.integers(0, n, starts[-1])
    return starts, sources, np.bincount(sources, minlength=n)


def _map_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    square = (X**2).sum(axis=1)
    D = np.sqrt(np.maximum(square[:, None] + square - 2 * X @ X.T, 0.0))
    P = np.exp(-(D**2))
    return D, rng.normal(size=(n, 2)), P / P.sum()


def _row_arguments(n: int) -> tuple[Any, ...]:
    X = np.random.default_rng(n).normal(size=(n, 12)) * np.linspace(2.0, 0.5, 12)
    X[9 * n // 10] = X[n // 2] + 1e-5
    return (X,)


def _bin_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    bins = rng.integers(0, 32, (n, 10))
    return bins, np.sin(bins[:, 0] / 8.0) + (bins[:, 1] > 12) + 0.1 * rng.normal(size=n)


_PAIRS = "A step needs the earlier steps that share a row of either matrix, and steps that share none are independent."
_SUMS = "The users, ratings, tokens or pairs of points only add to sums and counts, or find a maximum."
_ALONE = "The users, the rows, or the pairs of columns are independent."
_RUNS = "Both loops are running sums or maxima over the list, the second from its end."
_COMPACTED = "The words that are kept and the pairs are written at a position that counts those before them."
_TOTALS = "Every draw needs the counts of topics that the draw before has changed."
_STEP = "Every step uses the direction that the step before has changed."
_FOUND = "The loop returns at the first pair that is near; the pairs are independent."
_ITERATIONS = "In each iteration the rows, pages or tokens are independent or only add to sums."

CASES: tuple[Case, ...] = (
    Case("factorization", factorize_sgd, _rating_arguments, 1000, 60_000, Nature.WAVEFRONT, _PAIRS),
    Case("factorization", factorize_biased, _rating_arguments, 1500, 200_000, Nature.WAVEFRONT, _PAIRS),
    Case("factorization", als_half_step, _user_arguments, 120, 4000, Nature.PARALLEL, _ALONE),
    Case("recommender", rating_errors, _rating_arguments, 5000, 1_000_000, Nature.PARALLEL, _SUMS),
    Case("recommender", slope_one, lambda n: (*_user_arguments(n)[:3], 300), 40, 5000, Nature.PARALLEL, _SUMS),
    Case("recommender", item_similarity, lambda n: _score_arguments(n)[:1], 60, 15_000, Nature.PARALLEL, _ALONE),
    Case("recommender", ndcg, _score_arguments, 600, 8000, Nature.PARALLEL, _SUMS),
    Case("ranking", interpolated_precision, lambda n: (np.arange(n) % 7 < 3,), 40_000, 2_000_000, Nature.SCAN, _RUNS),
    Case("word2vec", word2vec, _pair_arguments, 400, 10_000, Nature.WAVEFRONT, _PAIRS),
    Case("word2vec", skipgram_pairs, _text_arguments, 5000, 150_000, Nature.SCAN, _COMPACTED),
    Case("co-occurrence", cooccurrence, lambda n: _text_arguments(n)[:1], 5000, 600_000, Nature.PARALLEL, _SUMS),
    Case("near duplicates", first_near_duplicate, _row_arguments, 200, 4000, Nature.SEARCH, _FOUND),
    Case("topic model", lda_gibbs, _corpus_arguments, 1000, 60_000, Nature.SERIAL, _TOTALS),
    Case("topic model", topic_counts, lambda n: _corpus_arguments(n)[:5], 10_000, 3_000_000, Nature.PARALLEL, _SUMS),
    Case("topic model", plsa, lambda n: _corpus_arguments(n)[:5], 1500, 60_000, Nature.PARALLEL, _ITERATIONS),
    Case("PageRank", pagerank, _link_arguments, 400, 50_000, Nature.PARALLEL, _ITERATIONS),
    Case("t-SNE", tsne_gradient, lambda n: _map_arguments(n)[1:], 100, 1500, Nature.PARALLEL, _SUMS),
    Case("t-SNE", perplexity_rows, lambda n: _map_arguments(n)[:1], 100, 280, Nature.PARALLEL, _ALONE),
    Case("Sammon map", sammon, lambda n: _map_arguments(n)[:2], 40, 300, Nature.PARALLEL, _SUMS),
    Case("principal components", pca_power, _row_arguments, 600, 30_000, Nature.PARALLEL, _ITERATIONS),
    Case("principal components", oja, _row_arguments, 4000, 100_000, Nature.SERIAL, _STEP),
    Case("gradient boosting", boost_histograms, _bin_arguments, 600, 200_000, Nature.PARALLEL, _ITERATIONS),
)
