"""Data wrangling as people write it with loops: columns held as arrays, grouped, joined, cleaned and looked up."""

# ruff: noqa: B905

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def group_means(codes, values, groups):
    """Sum, count and mean of the values of each group; rows without a group have code -1."""
    total, count = np.zeros(groups), np.zeros(groups, dtype=np.int64)
    for code, value in zip(codes, values):
        if code < 0:
            continue
        total[code] += value
        count[code] += 1
    return total, count, total / np.maximum(count, 1)


def merge_join(orders, amount, items, price):
    """Inner join of two tables sorted by item: the item and the value of each order that has a price."""
    item = np.zeros(len(orders), dtype=np.int64)
    value = np.zeros(len(orders))
    i = j = found = 0
    while i < len(orders) and j < len(items):
        if orders[i] < items[j]:
            i += 1
        elif orders[i] > items[j]:
            j += 1
        else:
            item[found] = items[j]
            value[found] = amount[i] * price[j]
            found += 1
            i += 1
    return item[:found], value[:found]


def keep_last(keys, values):
    """Remove rows with the same key from a sorted table in place, keeping the last; how many remain."""
    kept = 0
    for k in range(1, len(keys)):
        if keys[k] != keys[kept]:
            kept += 1
        keys[kept] = keys[k]
        values[kept] = values[k]
    return kept + 1


def rows_in_range(table, low=-1.0, high=0.5):
    """Rows whose first column is in a range and whose second is not negative."""
    out = np.empty_like(table)
    m = 0
    for row in table:
        if low <= row[0] < high and row[1] >= 0.0:
            out[m] = row
            m += 1
    return out[:m]


def one_hot(codes, groups):
    """A column of zeros and ones for each code."""
    out = np.zeros((len(codes), groups))
    for i, code in enumerate(codes):
        if code >= 0:
            out[i, code] = 1.0
    return out


def forward_fill(x):
    """Replace missing values by the last known one, in place; how many were missing."""
    filled = 0
    for i in range(1, len(x)):
        if np.isnan(x[i]):
            x[i] = x[i - 1]
            filled += 1
    return filled


def rolling_band(x, window=20, width=2.0):
    """Rolling mean with a lower and an upper band of so many standard deviations."""
    n = len(x)
    bands = np.zeros((n, 3))
    for i in range(window - 1, n):
        part = x[i - window + 1 : i + 1]
        mid, spread = part.mean(), width * part.std()
        bands[i, 0], bands[i, 1], bands[i, 2] = mid - spread, mid, mid + spread
    return bands


def bins_by_group(values, codes, edges, groups):
    """Cross table of binned values by group, with the shares of each bin."""
    table = np.zeros((len(edges) + 1, groups))
    for value, code in zip(values, codes):
        b = 0
        while b < len(edges) and value >= edges[b]:
            b += 1
        if code >= 0:
            table[b, code] += 1
    shares = np.zeros_like(table)
    for b, row in enumerate(table):
        if row.sum() > 0:
            shares[b] = row / row.sum()
    return table, shares


def lookup_prices(orders, amount, items, price):
    """Value of each order by its price in a sorted list, zero where there is none, and how many have none."""
    value = np.zeros(len(orders))
    missing = 0
    for i in range(len(orders)):
        k = np.searchsorted(items, orders[i])
        if k < len(items) and items[k] == orders[i]:
            value[i] = amount[i] * price[k]
        else:
            missing += 1
    return value, missing


def unit_rows(table):
    """Scale each row to length one in place; rows of zeros stay."""
    for i in range(table.shape[0]):
        norm = np.linalg.norm(table[i])
        if norm > 0:
            table[i] /= norm


def min_max_scale(table, low=0.0, high=1.0):
    """Scale each column to a range in place; the ranges the columns had."""
    n, p = table.shape
    ranges = np.zeros((p, 2))
    for j in range(p):
        lo, hi = table[:, j].min(), table[:, j].max()
        ranges[j] = lo, hi
        for i in range(n):
            table[i, j] = low + (high - low) * (table[i, j] - lo) / (hi - lo)
    return ranges


def hampel_filter(x, half=5, limit=3.0):
    """Series with outliers replaced by the median of the values around them, and their number."""
    out = x.copy()
    outliers = 0
    for i in range(half, len(x) - half):
        around = x[i - half : i + half + 1]
        mid = np.median(around)
        mad = np.median(np.abs(around - mid))
        if abs(x[i] - mid) > limit * 1.4826 * mad:
            out[i] = mid
            outliers += 1
    return out, outliers


def price_bars(time, price, size, step=60.0):
    """Open, high, low and close of each interval of a series of trades, and the volume."""
    n = int((time[-1] - time[0]) / step) + 1
    bars, volume = np.zeros((n, 4)), np.zeros(n)
    for t, p, q in zip(time, price, size):
        b = int((t - time[0]) / step)
        if volume[b] == 0:
            bars[b] = p
        bars[b, 1] = max(bars[b, 1], p)
        bars[b, 2] = min(bars[b, 2], p)
        bars[b, 3] = p
        volume[b] += q
    return bars, volume


def longest_run(x, threshold=0.0):
    """Start and length of the first longest run of values above a threshold."""
    best = start = length = 0
    for i, v in enumerate(x):
        length = length + 1 if v > threshold else 0
        if length > best:
            best = length
            start = i - length + 1
    return start, best


def balances(codes, values, groups):
    """Balance of the account after each booking, and the lowest that each account had."""
    balance, lowest = np.zeros(groups), np.zeros(groups)
    after = np.zeros(len(values))
    for k in range(len(values)):
        account = codes[k]
        if account < 0:
            continue
        balance[account] += values[k]
        after[k] = balance[account]
        lowest[account] = min(lowest[account], balance[account])
    return after, lowest


def top_per_row(table, k=3):
    """Columns of the largest values of each row, largest first."""
    top = np.zeros((len(table), k), dtype=np.int64)
    for i, row in enumerate(table):
        left = row.copy()
        for r in range(k):
            top[i, r] = np.argmax(left)
            left[top[i, r]] = -np.inf
    return top


def haversine_km(lat1, lon1, lat2, lon2):
    """Distance between two points on the earth, in km."""
    a, b = math.radians(lat1), math.radians(lat2)
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    return 2 * 6371.0 * math.asin(math.sqrt(h))


def nearest_shop(lat, lon, shops):
    """Nearest shop of each customer and how far it is."""
    which = np.zeros(len(lat), dtype=np.int64)
    far = np.full(len(lat), np.inf)
    for i in range(len(lat)):
        for s, (shop_lat, shop_lon) in enumerate(shops):
            d = haversine_km(lat[i], lon[i], shop_lat, shop_lon)
            if d < far[i]:
                far[i] = d
                which[i] = s
    return which, far


def cell_codes(lat, lon, bits=16):
    """Code of the map cell of each point: the bits of latitude and longitude in turns, as in a geohash."""
    codes = np.zeros(len(lat), dtype=np.int64)
    for i in range(len(lat)):
        y = int((lat[i] + 90.0) / 180.0 * 2**bits)
        x = int((lon[i] + 180.0) / 360.0 * 2**bits)
        for b in range(bits):
            codes[i] |= (y >> b & 1) << 2 * b | (x >> b & 1) << 2 * b + 1
    return codes


def sessionize(user, time, gap=60.0):
    """Number of the session of each event; a new one begins with a new user or after a long gap."""
    session = np.zeros(len(time), dtype=np.int64)
    for k in range(1, len(time)):
        session[k] = session[k - 1]
        if user[k] != user[k - 1] or time[k] - time[k - 1] > gap:
            session[k] += 1
    return session


def parse_numbers(text):
    """Whole numbers in an array of bytes, separated by anything that is neither a digit nor a minus."""
    numbers = np.zeros(len(text) // 2 + 1, dtype=np.int64)
    found, value, sign, inside = 0, 0, 1, False
    for byte in text:
        if 48 <= byte <= 57:
            value = 10 * value + int(byte) - 48
            inside = True
        elif byte == 45:
            sign = -1
        else:
            if inside:
                numbers[found] = sign * value
                found += 1
            value, sign, inside = 0, 1, False
    return numbers[:found]


def rate_limit(time, size, rate=1.0, burst=20.0):
    """Which requests a token bucket lets pass."""
    passed = np.zeros(len(time), dtype=np.bool_)
    tokens = burst
    for k in range(1, len(time)):
        tokens = min(burst, tokens + rate * (time[k] - time[k - 1]))
        if size[k] <= tokens:
            tokens -= size[k]
            passed[k] = True
    return passed


def pack_batches(lengths, limit=1_000, boxes=32):
    """Batch of each document: the first open one with room; when none has room, the fullest is sent off and renewed."""
    room = np.full(boxes, limit)
    number = np.arange(boxes)
    batch = np.zeros(len(lengths), dtype=np.int64)
    opened = boxes
    for k, length in enumerate(lengths):
        for b in range(boxes):
            if room[b] >= length:
                break
        else:
            b = np.argmin(room)
            room[b], number[b] = limit, opened
            opened += 1
        room[b] -= length
        batch[k] = number[b]
    return batch, opened


def first_bad_trade(time, price, size):
    """Position of the first trade that goes back in time or has no price or size, or -1."""
    for k in range(1, len(time)):
        if time[k] < time[k - 1] or price[k] <= 0.0 or size[k] == 0:
            return k
    return -1


def _sum_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.integers(-1, 1_000, n), rng.normal(10.0, 50.0, n), 1_000


def _code_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).integers(-1, 50, n), 50


def _bin_arguments(n: int) -> tuple[Any, ...]:
    codes, values, _ = _sum_arguments(n)
    return values, codes % 12, np.linspace(-80.0, 100.0, 10), 12


def _order_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    items = np.unique(rng.integers(0, n, n // 4))
    return np.sort(rng.integers(0, n, n)), rng.uniform(1.0, 9.0, n), items, rng.uniform(1.0, 99.0, len(items))


def _look_arguments(n: int) -> tuple[Any, ...]:
    return np.random.default_rng(n).permutation(_order_arguments(n)[0]), *_order_arguments(n)[1:]


def _keys_arguments(n: int) -> tuple[Any, ...]:
    return _order_arguments(n)[:2]


def _table_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).normal(size=(n, 20)),)


def _series_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return (np.cumsum(rng.normal(size=n)) + np.where(rng.random(n) < 0.01, 30.0, 0.0),)


def _gaps_arguments(n: int) -> tuple[Any, ...]:
    missing = np.random.default_rng(n + 1).random(n) < 0.2
    missing[0] = False
    return (np.where(missing, np.nan, _series_arguments(n)[0]),)


def _trade_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return np.cumsum(rng.exponential(2.0, n)), 100.0 + rng.normal(size=n), rng.integers(1, 10, n)


def _bad_arguments(n: int) -> tuple[Any, ...]:
    time, price, size = _trade_arguments(n)
    price[n - n // 20] = 0.0
    return time, price, size


def _request_arguments(n: int) -> tuple[Any, ...]:
    return _trade_arguments(n)[::2]


def _place_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(47.0, 55.0, n), rng.uniform(6.0, 15.0, n), rng.uniform((47.0, 6.0), (55.0, 15.0), (40, 2))


def _point_arguments(n: int) -> tuple[Any, ...]:
    return _place_arguments(n)[:2]


def _event_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return np.sort(rng.integers(0, n // 50, n)), np.cumsum(rng.exponential(25.0, n))


def _length_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).integers(10, 600, n),)


def _text_arguments(n: int) -> tuple[Any, ...]:
    numbers = np.random.default_rng(n).integers(-99_999, 99_999, n)
    return (np.frombuffer((",".join(map(str, numbers)) + "\n").encode(), dtype=np.uint8).copy(),)


CASES: tuple[Case, ...] = (
    Case(
        "group by", group_means, _sum_arguments, 16_000, 6_000_000, Nature.PARALLEL, "Each row only adds to its group."
    ),
    Case(
        "join",
        merge_join,
        _order_arguments,
        12_000,
        2_500_000,
        Nature.SCAN,
        "Both tables can be cut at the same item, and matches are put one after another, a compaction.",
    ),
    Case("duplicates", keep_last, _keys_arguments, 20_000, 6_000_000, Nature.SCAN, "A new place is a running count."),
    Case("filter", rows_in_range, _table_arguments, 20_000, 700_000, Nature.SCAN, "A new place is a running count."),
    Case("one-hot", one_hot, _code_arguments, 60_000, 200_000, Nature.PARALLEL, "Each code writes its own row."),
    Case(
        "missing", forward_fill, _gaps_arguments, 20_000, 5_000_000, Nature.SCAN, "The last known value is handed on."
    ),
    Case("rolling", rolling_band, _series_arguments, 700, 300_000, Nature.PARALLEL, "Each window writes its own row."),
    Case(
        "cross table",
        bins_by_group,
        _bin_arguments,
        10_000,
        1_500_000,
        Nature.PARALLEL,
        "Each row only adds one to a cell.",
    ),
    Case(
        "lookup", lookup_prices, _look_arguments, 6_000, 200_000, Nature.PARALLEL, "Each order is looked up by itself."
    ),
    Case(
        "norms", unit_rows, _table_arguments, 4_000, 400_000, Nature.PARALLEL, "Each row is scaled by its own length."
    ),
    Case(
        "scaling", min_max_scale, _table_arguments, 2_000, 150_000, Nature.PARALLEL, "Each column is scaled by itself."
    ),
    Case(
        "outliers", hampel_filter, _series_arguments, 400, 40_000, Nature.PARALLEL, "Values only read the old series."
    ),
    Case(
        "bars",
        price_bars,
        _trade_arguments,
        10_000,
        4_000_000,
        Nature.PARALLEL,
        "Bars hold sums, extremes and the first and last price by position, which can be taken in parts.",
    ),
    Case(
        "runs", longest_run, _series_arguments, 80_000, 8_000_000, Nature.SCAN, "A run's length is a count with resets."
    ),
    Case("balances", balances, _sum_arguments, 20_000, 5_000_000, Nature.SCAN, "Each account is a running sum."),
    Case("top k", top_per_row, _table_arguments, 2_000, 200_000, Nature.PARALLEL, "Each row is ranked by itself."),
    Case("distances", nearest_shop, _place_arguments, 200, 10_000, Nature.PARALLEL, "Each customer looks by itself."),
    Case("geohash", cell_codes, _point_arguments, 2_500, 1_000_000, Nature.PARALLEL, "Each point has its own code."),
    Case("sessions", sessionize, _event_arguments, 30_000, 8_000_000, Nature.SCAN, "Its number is a running count."),
    Case("parsing", parse_numbers, _text_arguments, 8_000, 700_000, Nature.SCAN, "It is a recurrence with resets."),
    Case(
        "rate limit",
        rate_limit,
        _request_arguments,
        15_000,
        4_000_000,
        Nature.SERIAL,
        "It depends on all passed before.",
    ),
    Case(
        "batches",
        pack_batches,
        _length_arguments,
        6_000,
        600_000,
        Nature.SERIAL,
        "Which box has room for a document depends on where all of the documents before it went.",
    ),
    Case(
        "checking",
        first_bad_trade,
        _bad_arguments,
        25_000,
        8_000_000,
        Nature.SEARCH,
        "It stops at the first bad trade.",
    ),
)
