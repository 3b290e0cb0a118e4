"""Compiled loops over the sparse histograms of classes: bounds on the largest part of a class that could pass.

Each takes the histogram's ``starts``, ``values`` and ``counts`` and the numbers of the classes to bound, ``rows``, and
returns one number for each of these. They add up and sort by hand, as those in ``kernels`` do.
"""

from __future__ import annotations

import numpy as np

from shoal.models.kernels import GAPS, longest, most_nodes, sort_counts
from shoal.table.frequency import Codes, Counts, Floats, RowNumbers
from shoal.table.jit import compiled, compiled_within

TINY = 1e-9  # a difference of sums that should be 0 must not become a tiny positive divisor: a bound would be too low
CUTS = 5  # linear cuts tried per class for a distance on a line


@compiled_within
def sort_pairs(keys: Floats, others: Floats, n: int) -> None:
    """Sort the first ``n`` keys in ascending order, and the others along with them."""
    for gap in GAPS:
        for i in range(gap, n):
            key, other = keys[i], others[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j], others[j] = keys[j - gap], others[j - gap]
                j -= gap
            keys[j], others[j] = key, other


@compiled
def most_with_entropy(starts: Counts, counts: Counts, rows: RowNumbers, least: float) -> Floats:
    """Return the size of the largest part of each class with an entropy of at least ``least``.

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
        if m == 0 or np.log(fixed) - logs / fixed >= least:
            out[at] = fixed
            continue
        if np.log(float(m)) < least:
            continue  # even equal shares of all values are not diverse enough
        for i in range(m - 1, -1, -1):
            fixed -= r[i]
            logs -= r[i] * np.log(r[i])
            cut = m - i  # as many values are cut, to a height between r[i - 1] and r[i]
            low = fixed + cut * (r[i - 1] if i else 0.0)
            if i and np.log(low) - (logs + cut * r[i - 1] * np.log(r[i - 1])) / low < least:
                continue
            high = fixed + cut * r[i]
            while high - low > 0.25:
                n = (low + high) / 2
                height = (n - fixed) / cut
                if np.log(n) - (logs + cut * height * np.log(height)) / n >= least:
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
    best, taken = whole, 0.0
    for i in range(m):
        taken += r[i]
        rest -= caps[i]
        if share - rest > TINY:
            best = min(best, taken / (share - rest))
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
    r, own, ratios = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    for at in range(rows.shape[0]):
        c = rows[at]
        m = starts[c + 1] - starts[c]
        for i in range(m):
            e = starts[c] + i
            r[i] = counts[e]
            own[i] = min(caps[values[e]], 1.0)
            ratios[i] = r[i] / own[i] if own[i] > 0 else np.inf
        out[at] = capped_part(r, own, ratios, m, share)
    return out


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
    every choice of σ gives a linear condition on the part, and with it a bound. The first two choices compare the mean;
    each further one is the average of the signs of the whole class and of the parts that the choices before left.
    """
    out = np.zeros(rows.shape[0])
    m = q.shape[0]
    held, weights, excess, ordered = np.zeros(m), np.empty(m), np.empty(m), np.empty(m)
    signs, part = np.zeros(m), np.zeros(m)
    for row in range(rows.shape[0]):
        c = rows[row]
        whole = 0.0
        held[:] = 0.0
        for e in range(starts[c], starts[c + 1]):
            held[places[values[e]]] = counts[e]
            whole += counts[e]
        best = size = whole
        signs[:] = 0.0
        for cut in range(CUTS):
            if cut < 2:
                weights[:] = 1.0 if cut == 0 else -1.0
            else:
                apart, moved = 0.0, False
                for i in range(m):
                    apart += (held[i] if cut == 2 else part[i]) / size - q[i]
                    sign = 1.0 if apart > 0 else (-1.0 if apart < 0 else 0.0)
                    moved |= sign != signs[i]
                    signs[i] += (sign - signs[i]) / (cut - 1)
                    weights[i] = signs[i]
                if cut > 2 and not moved:  # the same cut once more, and so on
                    break
            # A record at position i counts Σ_{j ≥ i} gaps_j σ_j; the overall distribution has the mean of these.
            mean, level = 0.0, 0.0
            for i in range(m - 1, -1, -1):
                level += gaps[i] * weights[i] if i < m - 1 else 0.0
                weights[i] = level
                mean += q[i] * level
            n = 0
            for i in range(m):
                at = m - 1 - i if cut == 0 else i  # in the order of the excess for the first two
                if held[at] > 0:
                    excess[n] = weights[at] - mean - t
                    ordered[n] = held[at]
                    n += 1
            if cut >= 2:
                sort_pairs(excess, ordered, n)
            # The largest part that this cut leaves: values in the order of their excess, as long as they fit.
            left, slack, threshold, share = 0.0, TINY, np.inf, 0.0
            for i in range(n):
                need = excess[i] * ordered[i]
                if need > slack:
                    left += slack / excess[i]
                    threshold, share = excess[i], slack / need
                    break
                left += ordered[i]
                slack -= need
            best = min(best, left)
            if cut >= 2:
                size = 0.0
                for i in range(m):
                    own = weights[i] - mean - t
                    part[i] = held[i] if own < threshold else (held[i] * share if own == threshold else 0.0)
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
    most = most_nodes(codes)
    caps = np.zeros((n_levels, most))
    for level in range(height):
        for v in range(n_values):
            caps[level, codes[level, v]] += q[v]
    held = np.zeros(most)
    r, own, ratios = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    for row in range(rows.shape[0]):
        c = rows[row]
        best = 0.0
        for e in range(starts[c], starts[c + 1]):
            best += counts[e]
        for level in range(height):
            within = t * height / (level + 1)
            if within >= 1:
                continue
            for e in range(starts[c], starts[c + 1]):
                held[codes[level, values[e]]] += counts[e]
            m = 0
            for e in range(starts[c], starts[c + 1]):
                node = codes[level, values[e]]
                if held[node] > 0:
                    r[m] = held[node]
                    own[m] = min(caps[level, node], 1.0)
                    ratios[m] = r[m] / own[m] if own[m] > 0 else np.inf
                    held[node] = 0.0
                    m += 1
            best = min(best, capped_part(r, own, ratios, m, 1 - within))
        out[row] = best
    return out
