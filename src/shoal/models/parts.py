"""Compiled loops over the sparse histograms of classes: bounds on the largest part of a class that could pass.

Each takes the histogram's ``starts``, ``values`` and ``counts`` and the numbers of the classes to bound, ``rows``, and
returns one number for each of these. They add up and sort by hand, as those in ``kernels`` do.
"""

from __future__ import annotations

import numpy as np

from shoal.compiled.jit import compiled, compiled_within
from shoal.models.kernels import GAPS, longest, most_nodes, sort_counts
from shoal.tables.frequency import Codes, Counts, Floats, RowNumbers

TINY = 1e-9  # a difference of sums that should be 0 must not become a tiny positive divisor: a bound would be too low
CUTS = 5  # linear cuts tried per class for a distance on a line


@compiled_within
def sort_pairs(keys: Floats, companions: Floats, n: int) -> None:
    """Sort the first ``n`` keys in ascending order, and the others along with them."""
    for gap in GAPS:
        for i in range(gap, n):
            key, other = keys[i], companions[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j], companions[j] = keys[j - gap], companions[j - gap]
                j -= gap
            keys[j], companions[j] = key, other


@compiled
def most_with_entropy(starts: Counts, counts: Counts, rows: RowNumbers, min_entropy: float) -> Floats:
    """Return the size of the largest part of each class with an entropy of at least ``min_entropy``.

    Of all parts of n records, the one that cuts the most frequent values to a common height has the greatest entropy;
    and the higher the cut, the smaller that entropy. So the part is found by its height: first between which two
    counts it lies, then by bisection of n.
    """
    out = np.zeros(rows.shape[0])
    r = np.empty(longest(starts))
    for at in range(rows.shape[0]):
        c = rows[at]
        m = starts[c + 1] - starts[c]
        for i in range(m):
            r[i] = counts[starts[c] + i]
        sort_counts(r, m)
        # Below the cut are the i smallest values, with ``fixed`` records and ``logs`` = Σ r ln r.
        fixed, logs = 0.0, 0.0
        for i in range(m):
            fixed += r[i]
            logs += r[i] * np.log(r[i])
        if m == 0 or np.log(fixed) - logs / fixed >= min_entropy:
            out[at] = fixed
            continue
        if np.log(float(m)) < min_entropy:
            continue  # even equal shares of all values are not diverse enough
        for i in range(m - 1, -1, -1):
            fixed -= r[i]
            logs -= r[i] * np.log(r[i])
            cut = m - i  # as many values are cut, to a height between r[i - 1] and r[i]
            low = fixed + cut * (r[i - 1] if i else 0.0)
            if i and np.log(low) - (logs + cut * r[i - 1] * np.log(r[i - 1])) / low < min_entropy:
                continue
            high = fixed + cut * r[i]
            while high - low > 0.25:
                n = (low + high) / 2
                height = (n - fixed) / cut
                if np.log(n) - (logs + cut * height * np.log(height)) / n >= min_entropy:
                    low = n
                else:
                    high = n
            out[at] = high
            break
    return out


@compiled
def most_recursive(starts: Counts, counts: Counts, rows: RowNumbers, least_c: float, l: int) -> Floats:
    """Return the size of the largest part of each class whose largest count is below ``least_c`` times its tail.

    With a largest count of x, every value may keep min(r, x), which maximizes the tail T(x) as well. T is concave, so
    the heights x that satisfy x < c T(x) lie below one bound, which bisection finds.
    """
    out = np.zeros(rows.shape[0])
    ranked = np.empty(longest(starts))
    for at in range(rows.shape[0]):
        c = rows[at]
        m = starts[c + 1] - starts[c]
        if m < l or m == 0:
            continue
        for i in range(m):
            ranked[i] = counts[starts[c] + i]
        sort_counts(ranked, m)
        low, high = 0.0, ranked[m - 1]  # the height that is known to pass, and the highest that may
        while low < high:
            x = (low + high + 1) // 2
            tail = 0.0
            for i in range(m - max(l, 1) + 1):
                tail += min(ranked[i], x)
            if x * (1 - 1e-12) < least_c * tail:
                low = x
            else:
                high = x - 1
        for i in range(m):
            out[at] += min(ranked[i], low)
    return out


@compiled_within
def capped_part(r: Floats, caps: Floats, ratios: Floats, m: int, share: float) -> float:
    """Return the largest n with Σ_s min(r_s, n·caps_s) ≥ share·n, over ``m`` values that occur.

    The sum is the minimum, over sets A of values, of Σ_A r + n Σ_not-A caps, so n is the minimum of
    Σ_A r / (share − Σ_not-A caps); the best sets are prefixes of the values ordered by ``ratios`` = r_s / caps_s.
    The three arrays are sorted in place.
    """
    whole, rest = 0.0, 0.0
    for i in range(m):
        whole += r[i]
        rest += caps[i]
    if share - rest > TINY:  # what is absent leaves a gap that no part fills
        return 0.0
    for gap in GAPS:
        for i in range(gap, m):
            ratio, count, cap = ratios[i], r[i], caps[i]
            j = i
            while j >= gap and ratios[j - gap] > ratio:
                ratios[j], r[j], caps[j] = ratios[j - gap], r[j - gap], caps[j - gap]
                j -= gap
            ratios[j], r[j], caps[j] = ratio, count, cap
    best, uncapped = whole, 0.0
    for i in range(m):
        uncapped += r[i]
        rest -= caps[i]
        if share - rest > TINY:
            best = min(best, uncapped / (share - rest))
    return best


@compiled
def most_under_caps(
    starts: Counts, values: Codes, counts: Counts, rows: RowNumbers, caps: Floats, share: float
) -> Floats:
    """Return the largest n for each class with Σ_s min(r_s, n·caps_s) ≥ share·n, at most the whole class.

    With share 1, this is the largest part in which no value s exceeds the share caps_s.
    """
    out = np.zeros(rows.shape[0])
    n_values = caps.shape[0]
    r, class_caps, ratios = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    for at in range(rows.shape[0]):
        c = rows[at]
        m = starts[c + 1] - starts[c]
        for i in range(m):
            e = starts[c] + i
            r[i] = counts[e]
            class_caps[i] = min(caps[values[e]], 1.0)
            ratios[i] = r[i] / class_caps[i] if class_caps[i] > 0 else np.inf
        out[at] = capped_part(r, class_caps, ratios, m, share)
    return out


@compiled_within
def part_that_fits(
    excess: Floats, amounts: Floats, n: int, slack: float, backwards: bool
) -> tuple[float, float, float]:
    """Return the largest part of ``amounts`` whose ``excess``, which ascends, adds up to no more than ``slack``.

    Also return the excess from which values no longer fit, and the share that still does of one with just that.
    """
    left = 0.0
    for i in range(n):
        at = n - 1 - i if backwards else i
        need = excess[at] * amounts[at]
        if need > slack:
            return left + slack / excess[at], excess[at], slack / need
        left += amounts[at]
        slack -= need
    return left, np.inf, 0.0


@compiled
def most_on_line(
    starts: Counts,
    values: Codes,
    counts: Counts,
    rows: RowNumbers,
    places: Counts,
    q: Floats,
    gaps: Floats,
    t: float,
) -> Floats:
    """Return a bound on the part of each class within ``t`` of the overall distribution, by ``line_distances``.

    The distance is the largest of Σ_i gaps_i σ_i (F_p(i) − F_q(i)) over signs σ in [−1, 1] (Kantorovich's duality), so
    every choice of σ gives a linear condition on the part, and with it a bound: a record at position i counts
    Σ_{j ≥ i} gaps_j σ_j, and the mean of the part must not exceed that of the overall distribution by more than t. The
    first two choices, all 1 and all −1, compare the mean position and are the same for all classes; each further one
    is the average of the signs of the whole class and of the parts that the choices before left.
    """
    out = np.zeros(rows.shape[0])
    m = q.shape[0]
    amounts, part, weights, signs = np.zeros(m), np.empty(m), np.zeros(m), np.empty(m)
    before, after, up_to = np.zeros(m), np.empty(m), np.empty(m)
    excess, ordered = np.empty(m), np.empty(m)
    mean, below = 0.0, 0.0
    for i in range(m - 2, -1, -1):
        before[i] = before[i + 1] + gaps[i]
        mean += q[i] * before[i]
    for i in range(m):
        after[i] = mean - before[i] - t
        before[i] = before[i] - mean - t
        below += q[i]
        up_to[i] = below
    for row in range(rows.shape[0]):
        c = rows[row]
        size = 0.0
        for i in range(m):
            amounts[i] = signs[i] = 0.0
        for e in range(starts[c], starts[c + 1]):
            amounts[places[values[e]]] = counts[e]
            size += counts[e]
        best = min(size, part_that_fits(before, amounts, m, TINY, True)[0])
        best = min(best, part_that_fits(after, amounts, m, TINY, False)[0])
        for i in range(m):
            part[i] = amounts[i]
        for cut in range(1, CUTS - 1):
            # The signs are summed, not averaged, and all that they are compared with is multiplied instead.
            below, moved = 0.0, False
            for i in range(m - 1):
                below += part[i]
                surplus = below - size * up_to[i]
                sign = 1.0 if surplus > 0 else (-1.0 if surplus < 0 else 0.0)
                moved |= signs[i] != (cut - 1) * sign
                signs[i] += sign
            if cut > 1 and not moved:  # the same cut once more, and so on
                break
            mean = cut * t
            for i in range(m - 2, -1, -1):
                weights[i] = weights[i + 1] + gaps[i] * signs[i]
                mean += q[i] * weights[i]
            n = 0
            for i in range(m):
                if amounts[i] > 0:
                    excess[n] = weights[i] - mean
                    ordered[n] = amounts[i]
                    n += 1
            sort_pairs(excess, ordered, n)
            left, threshold, share = part_that_fits(excess, ordered, n, cut * TINY, False)
            best = min(best, left)
            size = 0.0
            for i in range(m):
                weight = weights[i] - mean
                part[i] = amounts[i] if weight < threshold else (amounts[i] * share if weight == threshold else 0.0)
                size += part[i]
            if size <= 0.0:
                break
        out[row] = best
    return out


@compiled
def most_in_subtrees(
    starts: Counts, values: Codes, counts: Counts, rows: RowNumbers, codes: Codes, q: Floats, t: float
) -> Floats:
    """Return a bound on the part of each class within ``t`` of the overall distribution, by ``tree_distances``.

    At every level, the shares of the subtrees differ by at most t·H/(level + 1) in total.
    """
    out = np.zeros(rows.shape[0])
    n_levels, n_values = codes.shape
    height = n_levels - 1
    max_nodes = most_nodes(codes)
    caps = np.zeros((n_levels, max_nodes))
    for level in range(height):
        for v in range(n_values):
            caps[level, codes[level, v]] += q[v]
    amounts = np.zeros(max_nodes)
    r, node_caps, ratios = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    for row in range(rows.shape[0]):
        c = rows[row]
        best = 0.0
        for e in range(starts[c], starts[c + 1]):
            best += counts[e]
        for level in range(height):
            radius = t * height / (level + 1)
            if radius >= 1:
                continue
            for e in range(starts[c], starts[c + 1]):
                amounts[codes[level, values[e]]] += counts[e]
            m = 0
            for e in range(starts[c], starts[c + 1]):
                node = codes[level, values[e]]
                if amounts[node] > 0:
                    r[m] = amounts[node]
                    node_caps[m] = min(caps[level, node], 1.0)
                    ratios[m] = r[m] / node_caps[m] if node_caps[m] > 0 else np.inf
                    amounts[node] = 0.0
                    m += 1
            best = min(best, capped_part(r, node_caps, ratios, m, 1 - radius))
        out[row] = best
    return out
