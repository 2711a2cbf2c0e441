"""Sequences as people write them with loops: alignment, hidden states, counting, searching, dynamic programs, text."""

# ruff: noqa: B905, RUF007

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def edit_distance(a, b):
    """Levenshtein distance of two code sequences from the full table."""
    n, m = len(a), len(b)
    D = np.zeros((n + 1, m + 1), dtype=np.int64)
    D[:, 0] = np.arange(n + 1)
    D[0, :] = np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            D[i, j] = min(D[i - 1, j] + 1, D[i, j - 1] + 1, D[i - 1, j - 1] + cost)
    return D[n, m]


def weighted_edit_distance(a, b, insert=1.0, delete=1.0, replace=1.5):
    """Edit distance with weights, keeping two rows that change places."""
    previous = insert * np.arange(len(b) + 1)
    current = np.zeros(len(b) + 1)
    for x in a:
        current[0] = previous[0] + delete
        for j, y in enumerate(b):
            best = previous[j] if x == y else previous[j] + replace
            if previous[j + 1] + delete < best:
                best = previous[j + 1] + delete
            if current[j] + insert < best:
                best = current[j] + insert
            current[j + 1] = best
        previous, current = current, previous
    return previous[-1]


def longest_common_subsequence(a, b):
    """A longest common subsequence, by the table of lengths and a walk back through it."""
    n, m = a.size, b.size
    L = np.zeros((n + 1, m + 1), np.int32)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                L[i + 1, j + 1] = L[i, j] + 1
            else:
                L[i + 1, j + 1] = max(L[i, j + 1], L[i + 1, j])
    out = np.zeros(L[n, m], a.dtype)
    i, j, k = n, m, L[n, m] - 1
    while k >= 0:
        if L[i - 1, j] == L[i, j]:
            i -= 1
        elif L[i, j - 1] == L[i, j]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            out[k] = a[i]
            k -= 1
    return out


def smith_waterman(a, b, scores, gap=2):
    """Best local alignment score under a score matrix, and where it ends."""
    H = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    best, end_a, end_b = 0, 0, 0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            h = max(0, H[i - 1, j - 1] + scores[a[i - 1], b[j - 1]], H[i - 1, j] - gap, H[i, j - 1] - gap)
            H[i, j] = h
            if h > best:
                best, end_a, end_b = h, i, j
    return best, end_a, end_b


def dtw_band(x, y, window):
    """Dynamic time warping distance of two signals, with a band around the diagonal."""
    n, m = len(x), len(y)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(max(1, i - window), min(m, i + window) + 1):
            d = abs(x[i - 1] - y[j - 1])
            D[i, j] = d + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, m]


def _dtw(x, y):
    row = np.full(len(y) + 1, np.inf)
    row[0] = 0.0
    for u in x:
        corner = row[0]
        row[0] = np.inf
        for j in range(len(y)):
            above = row[j + 1]
            row[j + 1] = (u - y[j]) ** 2 + min(corner, above, row[j])
            corner = above
    return math.sqrt(row[-1])


def nearest_template(query, templates):
    """Warping distance of a query to each template, and the nearest one."""
    distances = np.zeros(len(templates))
    nearest, smallest = -1, np.inf
    for k, template in enumerate(templates):
        distances[k] = _dtw(query, template)
        if distances[k] < smallest:
            smallest = distances[k]
            nearest = k
    return distances, nearest


def nussinov(bases, min_loop=3):
    """Largest number of base pairs in an RNA fold, over all intervals."""
    n = len(bases)
    N = np.zeros((n, n), dtype=np.int64)
    for i in reversed(range(n)):
        for j in range(i + min_loop + 1, n):
            best = max(N[i + 1, j], N[i, j - 1])
            if bases[i] + bases[j] == 3:
                best = max(best, N[i + 1, j - 1] + 1)
            for k in range(i + 1, j):
                if N[i, k] + N[k + 1, j] > best:
                    best = N[i, k] + N[k + 1, j]
            N[i, j] = best
    return N[0, n - 1]


def viterbi(log_start, log_trans, log_emit, obs):
    """Most likely hidden path of one observation sequence and its log probability."""
    T, K = len(obs), len(log_start)
    back = np.zeros((T, K), dtype=np.int64)
    delta = log_start + log_emit[:, obs[0]]
    for t in range(1, T):
        new = np.empty(K)
        for j in range(K):
            s = delta + log_trans[:, j]
            k = np.argmax(s)
            back[t, j] = k
            new[j] = s[k] + log_emit[j, obs[t]]
        delta = new
    path = np.zeros(T, dtype=np.int64)
    path[-1] = np.argmax(delta)
    for t in range(T - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path, delta.max()


def hmm_forward(start, trans, emit, obs):
    """Log likelihood of one observation sequence by the scaled forward recursion."""
    alpha = start * emit[:, obs[0]]
    loglik = 0.0
    for o in obs[1:]:
        scale = np.sum(alpha)
        loglik += np.log(scale)
        alpha = np.dot(alpha / scale, trans) * emit[:, o]
    return loglik + np.log(alpha.sum())


def hmm_score_all(start, trans, emit, sequences):
    """Log likelihood of each sequence (row) under a small hidden Markov model."""
    n, T = sequences.shape
    K = start.size
    scores = np.zeros(n)
    for s in range(n):
        alpha = start * emit[:, sequences[s, 0]]
        for t in range(1, T):
            nxt = np.zeros(K)
            for i in range(K):
                for j in range(K):
                    nxt[j] += alpha[i] * trans[i, j] * emit[j, sequences[s, t]]
            total = nxt.sum()
            scores[s] += math.log(total)
            alpha = nxt / total
    return scores


def crf_log_partition(unary, pairwise):
    """Log partition function of a linear-chain CRF, by log-sum-exp over the labels before."""
    T, K = unary.shape
    alpha = unary[0].copy()
    new = np.zeros(K)
    for t in range(1, T):
        for j in range(K):
            top = -np.inf
            for i in range(K):
                top = max(top, alpha[i] + pairwise[i, j])
            total = 0.0
            for i in range(K):
                total += math.exp(alpha[i] + pairwise[i, j] - top)
            new[j] = unary[t, j] + top + math.log(total)
        alpha[:] = new
    top = alpha.max()
    return top + np.log(np.sum(np.exp(alpha - top)))


def run_length_encode(codes):
    """Values and lengths of the runs of equal codes."""
    values = np.zeros_like(codes)
    lengths = np.zeros(len(codes), dtype=np.int64)
    runs = 0
    for i in range(len(codes)):
        if i == 0 or codes[i] != codes[i - 1]:
            values[runs] = codes[i]
            runs += 1
        lengths[runs - 1] += 1
    return values[:runs], lengths[:runs]


def bigram_probabilities(codes, vocabulary):
    """How often each code follows each other one, as probabilities with add-one smoothing."""
    counts = np.ones((vocabulary, vocabulary))
    for a, b in zip(codes[:-1], codes[1:]):
        counts[a, b] += 1
    for row in counts:
        row /= row.sum()
    return counts


def find_bytes(text, pattern):
    """Position of the first occurrence of a byte pattern, or -1."""
    m = len(pattern)
    for i in range(len(text) - m + 1):
        j = 0
        while j < m and text[i + j] == pattern[j]:
            j += 1
        if j == m:
            return i
    return -1


def longest_increasing_run(x):
    """Start and length of the longest strictly increasing stretch."""
    best, best_start = 1, 0
    start = 0
    for i in range(1, len(x)):
        if x[i] <= x[i - 1]:
            start = i
        if i - start + 1 > best:
            best, best_start = i - start + 1, start
    return best_start, best


def longest_increasing_subsequence(x):
    """Length of the longest increasing subsequence that ends at each element."""
    n = x.shape[0]
    length = np.ones(n, dtype=np.int64)
    for i in range(n):
        for j in range(i):
            if x[j] < x[i]:
                length[i] = max(length[i], length[j] + 1)
    return length


def knapsack(weights, values, capacity):
    """Best total value for each capacity, each item used at most once, in one row filled from the end."""
    best = np.zeros(capacity + 1)
    for w, v in zip(weights, values):
        for c in range(capacity, w - 1, -1):
            if best[c - w] + v > best[c]:
                best[c] = best[c - w] + v
    return best


def count_change(amount, coins, modulus=1_000_000_007):
    """Number of ways to pay each amount with unlimited coins, modulo a prime."""
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    for coin in coins:
        for a in range(coin, amount + 1):
            ways[a] = (ways[a] + ways[a - coin]) % modulus
    return ways


def tokenize(text):
    """Starts, lengths and hashes of the words in a byte text; anything but small letters separates."""
    starts = np.zeros(len(text) // 2 + 1, dtype=np.int64)
    lengths = np.zeros_like(starts)
    hashes = np.zeros_like(starts)
    words = 0
    inside = False
    for i, c in enumerate(text):
        if 97 <= c <= 122:
            if not inside:
                starts[words] = i
                words += 1
                inside = True
            lengths[words - 1] += 1
            hashes[words - 1] = (hashes[words - 1] * 31 + c) % 1_000_003
        else:
            inside = False
    return starts[:words], lengths[:words], hashes[:words]


def longest_palindrome(text):
    """Start and length of the longest palindrome, by growing one around each centre."""
    n = len(text)
    best, start = 0, 0
    for center in range(2 * n - 1):
        left = center // 2
        right = left + center % 2
        while left >= 0 and right < n and text[left] == text[right]:
            left -= 1
            right += 1
        if right - left - 1 > best:
            best = right - left - 1
            start = left + 1
    return start, best


def lz78_phrases(codes, alphabet=4):
    """Phrase number that precedes each new phrase of an LZ78 compression, and the number of phrases."""
    child = np.full((len(codes) + 1, alphabet), -1, dtype=np.int32)
    prefix = np.zeros(len(codes) + 1, dtype=np.int32)
    phrases = 1
    node = 0
    for c in codes:
        if child[node, c] >= 0:
            node = child[node, c]
        else:
            child[node, c] = phrases
            prefix[phrases] = node
            phrases += 1
            node = 0
    return prefix[:phrases], phrases


def text_statistics(text):
    """Letter entropy, number of words and number of sentences of a byte text."""
    letters = np.zeros(26, dtype=np.int64)
    words = sentences = 0
    for i, c in enumerate(text):
        if c >= 97 and c <= 122:
            letters[c - 97] += 1
            if i == 0 or text[i - 1] < 97:
                words += 1
        elif c == 46:
            sentences += 1
    p = letters[letters > 0] / letters.sum()
    return -np.sum(p * np.log2(p)), words, sentences


def _strings_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    a = rng.integers(0, 4, n)
    return a, np.where(rng.random(n) < 0.8, a, rng.integers(0, 4, n))[n // 20 :]


def _proteins_arguments(n: int) -> tuple[Any, ...]:
    return *_strings_arguments(n), np.full((4, 4), -1) + 4 * np.eye(4, dtype=np.int64)


def _signals_arguments(n: int) -> tuple[Any, ...]:
    t = np.linspace(0.0, 20.0, n)
    return np.sin(t), np.sin(t + 0.3 * np.sin(0.5 * t)), n // 5


def _templates_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=40), rng.normal(size=(n, 40))


def _bases_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).integers(0, 4, n),)


def _model(states: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    trans, emit = rng.dirichlet(np.ones(states), states), rng.dirichlet(np.ones(8), states)
    return np.full(states, 1.0 / states), trans, emit


def _viterbi_arguments(n: int) -> tuple[Any, ...]:
    start, trans, emit = _model(200, n)
    return np.log(start), np.log(trans + 1e-9), np.log(emit + 1e-9), np.random.default_rng(n).integers(0, 8, n)


def _forward_arguments(n: int) -> tuple[Any, ...]:
    return *_model(300, n), np.random.default_rng(n).integers(0, 8, n)


def _many_sequences_arguments(n: int) -> tuple[Any, ...]:
    return *_model(5, n), np.random.default_rng(n).integers(0, 8, (n, 30))


def _crf_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, 50)), rng.normal(size=(50, 50))


def _runs_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return (np.repeat(rng.integers(0, 5, n // 4), rng.integers(1, 8, n // 4)),)


def _vocabulary_arguments(n: int) -> tuple[Any, ...]:
    return np.minimum(np.random.default_rng(n).geometric(0.02, n), 299), 300


def _search_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    text, pattern = rng.integers(97, 101, n).astype(np.uint8), rng.integers(97, 101, 16).astype(np.uint8)
    text[n - n // 10 :][:16] = pattern
    return text, pattern


def _walk_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).normal(0.2, 1.0, n),)


def _items_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.integers(n // 200 + 1, n // 10, 100), rng.random(100), n


def _coins_arguments(n: int) -> tuple[Any, ...]:
    return n, np.array([1, 2, 5, 10, 20, 50, 100, 200])


def _text_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    codes = np.concatenate((np.arange(97, 123), np.full(5, 32), np.array([101, 101, 116, 46])))
    return (rng.choice(codes, n).astype(np.uint8),)


# fmt: off
CASES: tuple[Case, ...] = (
    Case("edit distance", edit_distance, _strings_arguments, 120, 1_600, Nature.WAVEFRONT,
         "Each cell needs its upper, left and upper left neighbours."),
    Case("edit distance", weighted_edit_distance, _strings_arguments, 150, 4_000, Nature.WAVEFRONT,
         "Each value needs its left neighbour and two of the row before."),
    Case("common subsequence", longest_common_subsequence, _strings_arguments, 160, 2_400, Nature.WAVEFRONT,
         "Each cell needs its upper, left and upper left neighbours, and the walk back is short."),
    Case("Smith-Waterman", smith_waterman, _proteins_arguments, 120, 1_800, Nature.WAVEFRONT,
         "Each cell needs its upper, left and upper left neighbours and adds to the search of a maximum."),
    Case("time warping", dtw_band, _signals_arguments, 220, 1_900, Nature.WAVEFRONT,
         "Each cell of the band needs its upper, left and upper left neighbours."),
    Case("time warping", nearest_template, _templates_arguments, 20, 8_000, Nature.PARALLEL,
         "Each template has its own table and only adds to the search of a minimum."),
    Case("RNA folding", nussinov, _bases_arguments, 50, 400, Nature.WAVEFRONT,
         "Each interval needs the shorter intervals within it, so those of one length are independent."),
    Case("Viterbi", viterbi, _viterbi_arguments, 20, 400, Nature.PARALLEL,
         "Observations follow one another, but each of them updates all states by themselves."),
    Case("HMM", hmm_forward, _forward_arguments, 400, 800, Nature.PARALLEL,
         "Observations follow one another, but each of them is a product with a matrix."),
    Case("HMM", hmm_score_all, _many_sequences_arguments, 30, 9_000, Nature.PARALLEL,
         "Each sequence has its own recursion."),
    Case("CRF", crf_log_partition, _crf_arguments, 8, 600, Nature.PARALLEL,
         "Positions follow one another, but each of them updates all labels by themselves."),
    Case("run lengths", run_length_encode, _runs_arguments, 30_000, 2_000_000, Nature.SCAN,
         "The place to write to is the number of runs so far."),
    Case("n-grams", bigram_probabilities, _vocabulary_arguments, 40_000, 10_000_000, Nature.PARALLEL,
         "Each pair of neighbours only adds one to a count."),
    Case("text search", find_bytes, _search_arguments, 40_000, 6_000_000, Nature.SEARCH,
         "It returns at the first match."),
    Case("increasing run", longest_increasing_run, _walk_arguments, 60_000, 16_000_000, Nature.SCAN,
         "The start of the run so far is a running maximum of the places where a run starts."),
    Case("increasing subsequence", longest_increasing_subsequence, _walk_arguments, 300, 6_000, Nature.PARALLEL,
         "Elements follow one another, but each of them is a maximum over all before it."),
    Case("knapsack", knapsack, _items_arguments, 600, 200_000, Nature.PARALLEL,
         "Items follow one another, but each capacity reads only values that the item before has left."),
    Case("coin change", count_change, _coins_arguments, 6_000, 900_000, Nature.SCAN,
         "For each coin the counts are running sums at the distance of the coin."),
    Case("tokenizing", tokenize, _text_arguments, 25_000, 3_000_000, Nature.SCAN,
         "The place to write to is the number of words so far, and a hash is a linear recurrence."),
    Case("palindrome", longest_palindrome, _bases_arguments, 20_000, 2_000_000, Nature.PARALLEL,
         "Each centre is grown by itself and only adds to the search of a maximum."),
    Case("compression", lz78_phrases, _bases_arguments, 40_000, 1_500_000, Nature.SERIAL,
         "Each step walks in the tree of phrases that the steps before have built."),
    Case("text statistics", text_statistics, _text_arguments, 40_000, 8_000_000, Nature.PARALLEL,
         "Each byte only adds to counts, with a look at the byte before it."),
)
# fmt: on
