"""Finance as people write it with loops: indicators, option prices, simulations, backtests, bonds, order books."""

# ruff: noqa: B905

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def moving_average(prices, window=20):
    """Simple moving average with one running total; the first values average what there is."""
    out = np.empty(len(prices))
    total = 0.0
    for i, p in enumerate(prices):
        total += p
        if i >= window:
            total -= prices[i - window]
        out[i] = total / min(i + 1, window)
    return out


def bollinger_bands(prices, window=20, width=2.0):
    """Middle, upper and lower band of each full window, and how often the price left the bands."""
    n = prices.shape[0] - window + 1
    bands = np.zeros((n, 3))
    outside = 0
    for i in range(n):
        w = prices[i : i + window]
        m, s = np.mean(w), np.std(w)
        bands[i, 0] = m
        bands[i, 1] = m + width * s
        bands[i, 2] = m - width * s
        if w[-1] > bands[i, 1] or w[-1] < bands[i, 2]:
            outside += 1
    return bands, outside


def ewma_volatility(prices, decay=0.94):
    """Exponentially weighted volatility of each asset (column) after each day."""
    T, assets = prices.shape
    vol = np.zeros((T, assets))
    for a in range(assets):
        var = 0.0
        for t in range(1, T):
            r = math.log(prices[t, a] / prices[t - 1, a])
            var = decay * var + (1.0 - decay) * r * r
            vol[t, a] = math.sqrt(252.0 * var)
    return vol


def ewma_covariance(returns, decay=0.97):
    """Exponentially weighted covariance of all assets, updated day by day."""
    _, assets = returns.shape
    cov = np.zeros((assets, assets))
    for r in returns:
        cov = decay * cov + (1.0 - decay) * np.outer(r, r)
    return cov


def max_drawdown(prices):
    """Largest relative fall from a peak so far, with the positions of the peak and of the trough."""
    peak, peak_at = prices[0], 0
    worst, start, end = 0.0, 0, 0
    for i in range(1, len(prices)):
        if prices[i] > peak:
            peak, peak_at = prices[i], i
        fall = (peak - prices[i]) / peak
        if fall > worst:
            worst, start, end = fall, peak_at, i
    return worst, start, end


def log_return_summary(prices):
    """Log returns, their mean and volatility, and the position of the best day."""
    n = len(prices) - 1
    r = np.empty(n)
    best = 0
    total = squares = 0.0
    for i in range(n):
        r[i] = np.log(prices[i + 1] / prices[i])
        total += r[i]
        squares += r[i] ** 2
        if r[i] > r[best]:
            best = i
    mean = total / n
    return r, mean, np.sqrt(squares / n - mean * mean), best


def relative_strength(prices, period=14):
    """RSI with Wilder's smoothing."""
    rsi = np.full(len(prices), 50.0)
    gain = loss = 0.0
    for i in range(1, len(prices)):
        change = prices[i] - prices[i - 1]
        up = change if change > 0 else 0.0
        down = -change if change < 0 else 0.0
        gain = (gain * (period - 1) + up) / period
        loss = (loss * (period - 1) + down) / period
        if i >= period and gain + loss > 0:
            rsi[i] = 100.0 * gain / (gain + loss)
    return rsi


def _norm_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def black_scholes(spot, strike, years, vol, rate=0.03):
    """Call and put prices and call deltas of many European options."""
    n = len(spot)
    call, put, delta = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        sd = vol[i] * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + rate * years[i]) / sd + 0.5 * sd
        disc = strike[i] * math.exp(-rate * years[i])
        delta[i] = _norm_cdf(d1)
        call[i] = spot[i] * delta[i] - disc * _norm_cdf(d1 - sd)
        put[i] = call[i] - spot[i] + disc
    return call, put, delta


def implied_volatility(price, spot, strike, years):
    """Implied volatility of each call (zero rate) by bisection, and the number of halvings in all."""
    vol = np.zeros(len(price))
    halvings = 0
    for i, (c, s, k, t) in enumerate(zip(price, spot, strike, years)):
        lo, hi = 1e-4, 4.0
        while hi - lo > 1e-6:
            mid = 0.5 * (lo + hi)
            sd = mid * math.sqrt(t)
            d1 = math.log(s / k) / sd + 0.5 * sd
            if s * _norm_cdf(d1) - k * _norm_cdf(d1 - sd) > c:
                hi = mid
            else:
                lo = mid
            halvings += 1
        vol[i] = 0.5 * (lo + hi)
    return vol, halvings


def american_put_tree(spot, strike, years, vol, rate, steps):
    """American put on a binomial tree, rolled back in place from the last level."""
    dt = years / steps
    u = math.exp(vol * math.sqrt(dt))
    p = (math.exp(rate * dt) - 1.0 / u) / (u - 1.0 / u)
    disc = math.exp(-rate * dt)
    values = np.empty(steps + 1)
    for j in range(steps + 1):
        values[j] = max(strike - spot * u ** (2 * j - steps), 0.0)
    for level in range(steps - 1, -1, -1):
        for j in range(level + 1):
            hold = disc * (p * values[j + 1] + (1.0 - p) * values[j])
            exercise = strike - spot * u ** (2 * j - level)
            values[j] = max(hold, exercise)
    return values[0]


def european_trees(spot, strikes, years, vol, rate=0.02, steps=200):
    """Price a call on a binomial tree for each strike, with whole levels at a time."""
    dt = years / steps
    u = np.exp(vol * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / u) / (u - 1 / u)
    disc = np.exp(-rate * dt)
    terminal = spot * u ** (2.0 * np.arange(steps + 1) - steps)
    prices = np.zeros(len(strikes))
    for k, strike in enumerate(strikes):
        v = np.maximum(terminal - strike, 0.0)
        for _ in range(steps):
            v = disc * (p * v[1:] + (1 - p) * v[:-1])
        prices[k] = v[0]
    return prices


def barrier_call(normals, spot=100.0, strike=100.0, barrier=85.0, vol=0.25):
    """Down-and-out call: payoff of each path, nothing where the path touches the barrier, and the survivors."""
    step = vol / np.sqrt(normals.shape[1])
    payoffs = np.zeros(len(normals))
    survivors = 0
    for i, z in enumerate(normals):
        x = np.log(spot)
        alive = True
        for e in z:
            x += step * e - 0.5 * step * step
            if x <= np.log(barrier):
                alive = False
                break
        if alive:
            survivors += 1
            payoffs[i] = max(np.exp(x) - strike, 0.0)
    return payoffs.mean(), survivors


def heston_terminal(z1, z2, kappa=2.0, theta=0.04, xi=0.3, rho=-0.7):
    """Terminal prices under Heston's model: all paths take one time step together."""
    steps, paths = z1.shape
    dt = 1.0 / steps
    log_s = np.full(paths, np.log(100.0))
    v = np.full(paths, theta)
    for t in range(steps):
        root = np.sqrt(np.maximum(v, 0.0) * dt)
        log_s += root * z1[t] - 0.5 * root**2
        v += kappa * (theta - v) * dt + xi * root * (rho * z1[t] + np.sqrt(1 - rho**2) * z2[t])
    return np.exp(log_s)


def stop_loss_backtest(prices, signal, stop=0.03, fee=0.0005):
    """Equity curve of a long-only strategy that enters on a signal and leaves on the reverse or on a trailing stop."""
    cash, shares, high = 1.0, 0.0, 0.0
    equity = np.ones(len(prices))
    trades = 0
    for t, p in enumerate(prices):
        if shares == 0.0 and signal[t] > 0:
            shares = cash * (1.0 - fee) / p
            cash, high = 0.0, p
            trades += 1
        elif shares > 0.0:
            high = max(high, p)
            if signal[t] < 0 or p < high * (1.0 - stop):
                cash, shares = shares * p * (1.0 - fee), 0.0
                trades += 1
        equity[t] = cash + shares * p
    return equity, trades


def crossover_grid(prices, fasts, slows):
    """Final wealth of an average-crossover strategy for each pair of window lengths, and the best pair."""
    sums = np.concatenate((np.zeros(1), np.cumsum(prices)))
    wealth = np.zeros((len(fasts), len(slows)))
    for a, f in enumerate(fasts):
        for b, s in enumerate(slows):
            w, position = 1.0, 0
            for t in range(s, len(prices)):
                if position == 1:
                    w *= prices[t] / prices[t - 1]
                fast_mean = (sums[t + 1] - sums[t + 1 - f]) / f
                slow_mean = (sums[t + 1] - sums[t + 1 - s]) / s
                position = 1 if fast_mean > slow_mean else 0
            wealth[a, b] = w
    best = np.argmax(wealth)
    return wealth, best // len(slows), best % len(slows)


def historical_var(returns, portfolios, level=0.95):
    """Historical value at risk and expected shortfall of each portfolio."""
    days = returns.shape[0]
    cut = int((1.0 - level) * days)
    risk = np.zeros((len(portfolios), 2))
    for k, weights in enumerate(portfolios):
        pnl = np.sort(np.dot(returns, weights))
        risk[k, 0] = -pnl[cut]
        risk[k, 1] = -np.mean(pnl[: cut + 1])
    return risk


def bond_yields(price, coupon, years, face=100.0):
    """Yield to maturity of each bond by Newton's method, with the duration at that yield."""
    y = np.empty(len(price))
    duration = np.empty(len(price))
    for i in range(len(price)):
        r = coupon[i]
        for _ in range(30):
            value, slope = 0.0, 0.0
            for t in range(1, years[i] + 1):
                cash = face * coupon[i] + (face if t == years[i] else 0.0)
                pv = cash / (1.0 + r) ** t
                value += pv
                slope -= t * pv / (1.0 + r)
            change = (value - price[i]) / slope
            r -= change
            if abs(change) < 1e-10:
                break
        y[i], duration[i] = r, -slope / value
    return y, duration


def bootstrap_curves(par_rates):
    """Discount factors from par swap rates, one scenario of rates in each row, in place."""
    for row in par_rates:
        annuity = 0.0
        for k in range(len(row)):
            row[k] = (1.0 - row[k] * annuity) / (1.0 + row[k])
            annuity += row[k]


def sweep_cost(ask_price, ask_size, quantity):
    """Average price of a market buy against each snapshot of an order book; 0 where the book is too thin."""
    snapshots, levels = ask_price.shape
    average = np.zeros(snapshots)
    for s in range(snapshots):
        left, paid = quantity[s], 0.0
        for k in range(levels):
            take = min(left, ask_size[s, k])
            paid += take * ask_price[s, k]
            left -= take
            if left <= 0:
                average[s] = paid / quantity[s]
                break
    return average


def match_limit_orders(ask_price, ask_size, limit, quantity):
    """Fill buy orders one after another from one book, in place; each takes what its limit allows."""
    filled = np.zeros(len(limit), dtype=np.int64)
    best = 0
    for o in range(len(limit)):
        level = best
        while level < len(ask_price) and ask_price[level] <= limit[o] and filled[o] < quantity[o]:
            take = min(ask_size[level], quantity[o] - filled[o])
            ask_size[level] -= take
            filled[o] += take
            if ask_size[level] > 0:
                break
            level += 1
        best = level
    return filled, best


def egarch_filter(returns, omega=-0.2, alpha=0.15, theta=-0.08, beta=0.97):
    """Conditional variances of an EGARCH model and the log likelihood."""
    log_var = math.log(np.var(returns))
    variance = np.empty_like(returns)
    loglik = 0.0
    for t in range(len(returns)):
        variance[t] = math.exp(log_var)
        z = returns[t] / math.sqrt(variance[t])
        loglik -= 0.5 * (math.log(2.0 * math.pi) + log_var + z * z)
        log_var = omega + beta * log_var + alpha * (abs(z) - math.sqrt(2.0 / math.pi)) + theta * z
    return variance, loglik


def first_exit(bid, ask, stop, target):
    """First tick at which a long position is closed: +1 with the target, -1 with the stop, 0 if neither comes."""
    for i, (b, a) in enumerate(zip(bid, ask)):
        if a - b > 0.5:
            continue
        if b >= target:
            return i, 1
        if b <= stop:
            return i, -1
    return len(bid), 0


def _prices_arguments(n: int) -> tuple[Any, ...]:
    return (100.0 * np.exp(np.cumsum(0.0008 * np.random.default_rng(n).normal(size=n))),)


def _assets_arguments(n: int) -> tuple[Any, ...]:
    return (100.0 * np.exp(np.cumsum(0.01 * np.random.default_rng(n).normal(size=(n, 40)), axis=0)),)


def _returns_arguments(n: int) -> tuple[Any, ...]:
    return (0.01 * np.random.default_rng(n).normal(size=(n, 120)),)


def _option_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(80, 120, n), rng.uniform(80, 120, n), rng.uniform(0.1, 3, n), rng.uniform(0.1, 0.6, n)


def _quote_arguments(n: int) -> tuple[Any, ...]:
    spot, strike, years, vol = _option_arguments(n)
    return black_scholes(spot, strike, years, vol, rate=0.0)[0], spot, strike, years


def _tree_arguments(n: int) -> tuple[Any, ...]:
    return 100.0, 105.0, 1.0, 0.25, 0.04, n


def _strikes_arguments(n: int) -> tuple[Any, ...]:
    return 100.0, np.linspace(60.0, 140.0, n), 1.0, 0.25


def _paths_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).normal(size=(n, 100)),)


def _heston_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(50, n)), rng.normal(size=(50, n))


def _signal_arguments(n: int) -> tuple[Any, ...]:
    return *_prices_arguments(n), np.random.default_rng(n + 1).choice(np.array([-1, 0, 1]), n, p=[0.02, 0.93, 0.05])


def _windows_arguments(n: int) -> tuple[Any, ...]:
    return *_prices_arguments(n), np.array([5, 8, 12, 16, 20, 25]), np.array([30, 45, 60, 100])


def _portfolio_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return 0.01 * rng.standard_t(4, size=(1000, 20)), rng.dirichlet(np.ones(20), n)


def _bond_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return rng.uniform(85, 115, n), rng.uniform(0.01, 0.07, n), rng.integers(2, 31, n)


def _curve_arguments(n: int) -> tuple[Any, ...]:
    return (0.01 + np.cumsum(np.random.default_rng(n).uniform(0.0, 0.002, (n, 30)), axis=1),)


def _book_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    price = 100.0 + np.cumsum(rng.uniform(0.01, 0.05, (n, 10)), axis=1)
    return price, rng.integers(1, 500, (n, 10)), rng.integers(100, 3000, n)


def _orders_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    levels = n // 2
    limit = 100.0 + 0.01 * np.linspace(0, levels, n) + rng.normal(0.0, 0.3, n)
    return 100.0 + 0.01 * np.arange(levels), rng.integers(1, 500, levels), limit, rng.integers(1, 300, n)


def _garch_arguments(n: int) -> tuple[Any, ...]:
    return (0.01 * np.random.default_rng(n).normal(size=n),)


def _tick_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    bid = 100.0 + rng.uniform(-1.0, 1.0, n)
    bid[n - n // 20 :] += 3.0
    return bid, bid + rng.exponential(0.1, n), 98.5, 102.5


# fmt: off
CASES: tuple[Case, ...] = (
    Case("moving average", moving_average, _prices_arguments, 40_000, 2_500_000, Nature.SCAN, "A running total."),
    Case("Bollinger bands", bollinger_bands, _prices_arguments, 900, 250_000, Nature.PARALLEL,
         "Each window writes its own row and only adds to a count."),
    Case("volatility", ewma_volatility, _assets_arguments, 600, 30_000, Nature.PARALLEL,
         "Days follow one another, but each asset has its own recurrence."),
    Case("covariance", ewma_covariance, _returns_arguments, 300, 1_500, Nature.PARALLEL,
         "Days follow one another, but each day updates all cells of the matrix by themselves."),
    Case("drawdown", max_drawdown, _prices_arguments, 60_000, 5_000_000, Nature.SCAN,
         "The fall is measured from a running maximum."),
    Case("returns", log_return_summary, _prices_arguments, 15_000, 1_200_000, Nature.PARALLEL,
         "Each return is its own, and only adds to sums and to the position of a maximum."),
    Case("RSI", relative_strength, _prices_arguments, 25_000, 2_500_000, Nature.SCAN,
         "The two averages are linear recurrences."),
    Case("Black-Scholes", black_scholes, _option_arguments, 8_000, 300_000, Nature.PARALLEL,
         "Each option is priced by itself."),
    Case("implied volatility", implied_volatility, _quote_arguments, 500, 15_000, Nature.PARALLEL,
         "Each option has its own search and only adds to a count."),
    Case("binomial tree", american_put_tree, _tree_arguments, 200, 1_200, Nature.PARALLEL,
         "Levels follow one another, but each node of a level reads only values of the level after it."),
    Case("binomial tree", european_trees, _strikes_arguments, 20, 800, Nature.PARALLEL,
         "Each strike has its own tree."),
    Case("Monte Carlo", barrier_call, _paths_arguments, 300, 100_000, Nature.PARALLEL,
         "Each path has its own row and payoff and only adds to a count."),
    Case("Monte Carlo", heston_terminal, _heston_arguments, 12_000, 40_000, Nature.PARALLEL,
         "Time steps follow one another, but each step moves all paths by themselves."),
    Case("backtest", stop_loss_backtest, _signal_arguments, 30_000, 3_000_000, Nature.SERIAL,
         "Whether the strategy holds shares, and its stop, depend on the trades before."),
    Case("backtest", crossover_grid, _windows_arguments, 800, 120_000, Nature.PARALLEL,
         "Each pair of window lengths is a backtest of its own."),
    Case("value at risk", historical_var, _portfolio_arguments, 300, 500, Nature.PARALLEL,
         "Each portfolio has its own profits, sort and row of results."),
    Case("bonds", bond_yields, _bond_arguments, 400, 60_000, Nature.PARALLEL,
         "Each bond has its own iterations of Newton's method."),
    Case("yield curve", bootstrap_curves, _curve_arguments, 2_000, 100_000, Nature.PARALLEL,
         "Each scenario is a row of its own."),
    Case("order book", sweep_cost, _book_arguments, 6_000, 800_000, Nature.PARALLEL,
         "Each snapshot is scanned by itself."),
    Case("order book", match_limit_orders, _orders_arguments, 15_000, 1_500_000, Nature.SERIAL,
         "What an order finds depends on what the orders before it took, which depends on their limits."),
    Case("GARCH", egarch_filter, _garch_arguments, 12_000, 600_000, Nature.SERIAL,
         "Each variance is a non-linear function of the one before."),
    Case("first exit", first_exit, _tick_arguments, 50_000, 10_000_000, Nature.SEARCH,
         "It returns at the first tick that closes the position."),
)
# fmt: on
