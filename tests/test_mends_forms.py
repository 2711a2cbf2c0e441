"""What `orion explain --fix` writes for refused code in many forms: applied, run, and held against Python."""

import pytest

from orion.cli.cli import main
from tests.cured_programs import Cured
from tests.mended_forms import MENDED
from tests.test_cures import function_of
from tests.test_mends_programs import HEAD, import_outside, options_of, same_as_before, text_of

OUTSIDE = "from outside_names import *\n\n\n"
FORMS = [tuple(one.strip("\n").split("\n->\n")) for one in MENDED.split("\n===\n")]

STAYS = r"""
for j in range(n):
    out[j] = 2.0 * sum(W[j, k2] for k2 in range(4)) if j > 1 else 0.0
===
for i in range(n):
    if any(v > 3.0 for v in W[i]):
        out[i] = 1.0
    elif all(v > 3.0 for v in W[i]):
        out[i] = 2.0
===
for i in range(n):
	match i % 3:
		case 1:
			out[i] = 1
		case _:
			out[i] = 2
===
for i in range(n):
    match k:  # which
        case 1 | 2:
            # a comment
            out[i] = 1
            out[i] += 3
        case -1 if i > 2:
            out[i] = 5
===
for i in range(n):
    p = two_of(x[i])
    out[i] = p[0] * p[-1] + two_of(2.0)[1]
===
c2 = 3.0
def scale2(a):
    return a * c2
for i in range(n):
    out[i] = scale2(x[i])
===
for i in range(n):
    idx[idx[:2]] = 0
    out[i] = x[i]
===
while k > (h := 2):
    k -= 1
for i in range(n):
    out[i] = x[i]
===
t = 'a'
for i in range(n):
    out[i] = x[i]
if k > 100:
    t = 2.0
out[0] = t if k > 100 else 1.0
===
for i in range(n):
    out[i] = np.std(single, ddof=1)
===
for i in range(n):
    out[i] = np.min(m, initial=-2) + np.sum(x, initial=2.5)
===
for i in range(n):
    out[i] = np.max(m, initial=2.5)
===
for i in range(n):
    out[i] = pow(i + 1, 3, 7) + pow(i, 2, k)
===
for i in range(n):
    out[i] = W[:2, m[:2], i % 4][0, 1] if k > 1 else W[i, 0]
===
for i in range(n):
    out[i] = 1.0 if i > 2 and sum(v for v in W[i]) > 2.0 else 0.0
===
for i in range(n):
    out[i] = x[i] + (x[i] if negated(i) in (0, -1) else y[i])
===
for i in range(n):
    out[i] = plus(x[i], 1.0) + (1.0 if negated(i) in (0, -1) else 2.0)
===
for i in range(n):
    out[i] = plus(x[i], 1.0) + (W[i][W[i] > 3.0].sum() if i % 2 else x[i])
===
for pair in zip(m, x):
    out[0] += pair[1]
    last = pair
===
for i in range(n):
    if i > 2:
        s = x[0]
        out[i] = s
    s = x * y
    out[i] += s[1]
===
part = x[1:4]
for i in range(n):
    out[i] = part[0]
x[0] = 3.0
for t in range(2):
    part = part + x[1:4]
out[0] = part[1]
===
for i in range(n):
    match i:  # which
        case 1:
            out[i] = 1
        case 2 | 3 if k > 1:
            out[i] = 3
            out[i] += x[i]
        case _:
            out[i] = 2
===
for i in range(n):
    match m[i % 2]:
        case a:
            out[i] = a
===
last = None
for i in range(n):
    if x[i] > 2.0:
        last = x[i]
    out[i] = 1.0 if last is None else 2.0
===
for i in range(n):
    W[i][flags[:4]] = y[i]
    out[i] = W[i, 0]
===
for i in range(n):
    x[idx[:2]] = y[:2]
    out[i] = x[i]
===
s = y
for i in range(n):
    x[idx[:5]] = s
    out[i] = x[i]
===
for i in range(n):
    match i:
        case 1:
            # first
            out[i] = 1
===
for i in range(n):
    out[i] = np.sum(W[i], keepdims=True)[0] * W.max(axis=0, keepdims=True)[0, i % 4]
"""
"""Programs that no mend is known for: it could mean something else, or names are taken."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import_outside(tmp_path)
    return tmp_path


def fixed(program: str, folder, newline: str = "\n") -> str:
    """What the file of a program has after `--fix`, which then does what the program did."""
    one = Cured("", program, "", False)
    _, given = function_of(program)
    path = folder / "train.py"
    before = f"{HEAD}{OUTSIDE}{text_of(one, given)}"
    path.write_bytes(before.replace("\n", newline).encode())
    main(["explain", "train.py", "--fix", *options_of(given)])
    after = path.read_bytes().decode()
    assert after.count(newline) == after.count("\n")
    after = after.replace(newline, "\n")
    if after != before:
        same_as_before(path, one, given)
    return "" if after == before else after.removeprefix(HEAD + OUTSIDE).rstrip("\n")


@pytest.mark.parametrize(("program", "after"), FORMS)
def test_what_is_written(program, after, folder):
    assert fixed(program, folder) == after


@pytest.mark.parametrize("program", [one.strip("\n") for one in STAYS.split("\n===\n")])
def test_what_stays(program, folder):
    assert fixed(program, folder) == ""


@pytest.mark.parametrize(("program", "after"), FORMS[::6])
def test_line_ends_stay(program, after, folder):
    assert fixed(program, folder, "\r\n") == after
