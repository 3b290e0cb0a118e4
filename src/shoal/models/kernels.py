"""Compiled loops over the sparse histograms of classes: scores, and bounds on the largest part that could pass.

Each takes the histogram's ``starts``, ``values`` and ``counts`` and returns one number per class; each has a plain
equivalent in its test. They add up and sort by hand: with NumPy's sums and sorts inside, loading a compiled loop
would prepare the compiler in every process, and compiling it would take seconds.
"""

from __future__ import annotations

from math import log

import numpy as np

from shoal.table.frequency import Codes, Counts, Floats
from shoal.table.jit import compiled, compiled_when_long, compiled_within

TINY = 1e-9  # a difference of sums that should be 0 must not become a tiny positive divisor: a bound would be too low
CUTS = 5  # linear cuts tried per class for a distance on a line


# Distances of Shell's sort: a few lines that compile in no time, and short lists are sorted by plain insertion.
GAPS = (701, 301, 132, 57, 23, 10, 4, 1)


@compiled_within
def sort_counts(counts: Floats, n: int) -> None:
    """Sort the first ``n`` counts in ascending order."""
    for gap in GAPS:
        for i in range(gap, n):
            count = counts[i]
            j = i
            while j >= gap and counts[j - gap] > count:
                counts[j] = counts[j - gap]
                j -= gap
            counts[j] = count


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


@compiled_within
def longest(starts: Counts) -> int:
    """Return the largest number of entries of a class."""
    most = 0
    for c in range(starts.shape[0] - 1):
        most = max(most, starts[c + 1] - starts[c])
    return most


@compiled_when_long(lambda _, counts: len(counts))
def entropies(starts: Counts, counts: Counts) -> Floats:
    """Return the entropy of each class in nats: ln n − Σ r ln r / n."""
    out = np.zeros(starts.shape[0] - 1)
    for c in range(out.shape[0]):
        n, total = 0, 0.0
        for e in range(starts[c], starts[c + 1]):
            r = counts[e]
            n += r
            if r > 1:
                total += r * log(float(r))
        if n:
            out[c] = log(float(n)) - total / n
    return out


@compiled
def most_with_entropy(starts: Counts, counts: Counts, least: float) -> Floats:
    """Return the size of the largest part of each class with an entropy of at least ``least``.

    Of all parts of n records, the one that cuts the most frequent values to a common height has the greatest entropy;
    and the higher the cut, the smaller that entropy. So the part is found by its height: first between which two
    counts it lies, then by bisection of n.
    """
    out = np.zeros(starts.shape[0] - 1)
    r = np.empty(longest(starts))
    for c in range(out.shape[0]):
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
            out[c] = fixed
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
            out[c] = high
            break
    return out


@compiled_when_long(lambda _, counts, l: 2 * len(counts))
def heads_and_tails(starts: Counts, counts: Counts, l: int) -> tuple[Counts, Counts]:
    """Return r_1 and r_ℓ + r_{ℓ+1} + … + r_m of each class, where r_1 ≥ r_2 ≥ … are its counts."""
    n_classes = starts.shape[0] - 1
    heads, tails = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    ranked = np.empty(longest(starts))
    for c in range(n_classes):
        m = starts[c + 1] - starts[c]
        for i in range(m):
            ranked[i] = counts[starts[c] + i]
        sort_counts(ranked, m)
        heads[c] = ranked[m - 1] if m else 0
        for i in range(m - max(l, 1) + 1):
            tails[c] += np.int64(ranked[i])
    return heads, tails


@compiled
def most_recursive(starts: Counts, counts: Counts, least_c: float, l: int) -> Floats:
    """Return the size of the largest part of each class whose largest count is below ``least_c`` times its tail.

    With a largest count of x, every value may keep min(r, x), which maximizes the tail T(x) as well. T is concave, so
    the heights x that satisfy x < c T(x) lie below one bound, which bisection finds.
    """
    out = np.zeros(starts.shape[0] - 1)
    ranked = np.empty(longest(starts))
    for c in range(out.shape[0]):
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
            out[c] += min(ranked[i], low)
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
def most_under_caps(starts: Counts, values: Codes, counts: Counts, caps: Floats, share: float) -> Floats:
    """Return the largest n for each class with Σ_s min(r_s, n·caps_s) ≥ share·n, at most the whole class.

    With share 1, this is the largest part in which no value s exceeds the share caps_s.
    """
    out = np.zeros(starts.shape[0] - 1)
    n_values = caps.shape[0]
    r, own, ratios = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    for c in range(out.shape[0]):
        m = starts[c + 1] - starts[c]
        for i in range(m):
            e = starts[c] + i
            r[i] = counts[e]
            own[i] = min(caps[values[e]], 1.0)
            ratios[i] = r[i] / own[i] if own[i] > 0 else np.inf
        out[c] = capped_part(r, own, ratios, m, share)
    return out


def equal_distances(starts: Counts, values: Codes, counts: Counts, q: Floats) -> Floats:
    """Return ½ Σ |p − q| of each class; values that are absent add their q."""
    out = np.zeros(len(starts) - 1)
    _equal_distances(starts, values, counts, q, out)
    return out


@compiled_when_long(lambda _, values, *rest: 2 * len(values) + len(rest[1]))
def _equal_distances(starts: Counts, values: Codes, counts: Counts, q: Floats, out: Floats) -> None:
    whole = 0.0
    for v in range(q.shape[0]):
        whole += q[v]
    for c in range(out.shape[0]):
        n = 0
        for e in range(starts[c], starts[c + 1]):
            n += counts[e]
        total, present = 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            total += abs(counts[e] / n - q[values[e]])
            present += q[values[e]]
        out[c] = (total + (whole - present)) / 2


def line_distances(starts: Counts, values: Codes, counts: Counts, places: Counts, q: Floats, gaps: Floats) -> Floats:
    """Return Σ_i gaps_i |F_p(i) − F_q(i)| of each class.

    ``places[v]`` is the position of value v on the line, ``q`` the overall shares by position, ``gaps[i]`` the distance
    from position i to the next.
    """
    out = np.zeros(len(starts) - 1)
    _line_distances(starts, values, counts, places, np.cumsum(q), gaps, np.zeros(len(q)), out)
    return out


@compiled
def _line_distances(
    starts: Counts,
    values: Codes,
    counts: Counts,
    places: Counts,
    up_to: Floats,
    gaps: Floats,
    held: Floats,
    out: Floats,
) -> None:
    """Apply ``line_distances``; ``up_to`` are the overall shares up to each position, ``held`` is 0."""
    for c in range(out.shape[0]):
        n = 0
        for e in range(starts[c], starts[c + 1]):
            n += counts[e]
            held[places[values[e]]] = counts[e]
        total, below = 0.0, 0.0  # the distance times n, and the records up to a position
        for i in range(gaps.shape[0]):
            below += held[i]
            total += gaps[i] * abs(below - n * up_to[i])
        out[c] = total / n if n else 0.0
        for e in range(starts[c], starts[c + 1]):
            held[places[values[e]]] = 0.0


@compiled
def most_on_line(
    starts: Counts, values: Codes, counts: Counts, places: Counts, q: Floats, gaps: Floats, t: float
) -> Floats:
    """Return a bound on the part of each class within ``t`` of the overall distribution, by ``line_distances``.

    The distance is the largest of Σ_i gaps_i σ_i (F_p(i) − F_q(i)) over signs σ in [−1, 1] (Kantorovich's duality), so
    every choice of σ gives a linear condition on the part, and with it a bound. The first two choices compare the mean;
    each further one is the average of the signs of the whole class and of the parts that the choices before left.
    """
    out = np.zeros(starts.shape[0] - 1)
    m = q.shape[0]
    held, weights, excess, ordered = np.zeros(m), np.empty(m), np.empty(m), np.empty(m)
    signs, part = np.zeros(m), np.zeros(m)
    for c in range(out.shape[0]):
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
        out[c] = best
    return out


@compiled_within
def most_nodes(codes: Codes) -> int:
    """Return the largest number of subtrees of a level; none of the values of some may occur."""
    most: int = codes.shape[1]
    for level in range(codes.shape[0]):
        for v in range(codes.shape[1]):
            most = max(most, int(codes[level, v]) + 1)
    return most


@compiled
def tree_distances(starts: Counts, values: Codes, counts: Counts, codes: Codes, q: Floats) -> Floats:
    """Return the cost of moving mass through nearest common ancestors in each class, priced by their height.

    ``codes[level, v]`` is the subtree of value v at a level. Within every subtree, the amount moved is the smaller of
    its children's total surplus and total deficit.
    """
    out = np.zeros(starts.shape[0] - 1)
    n_levels, n_values = codes.shape
    height = n_levels - 1
    most = most_nodes(codes)
    first = np.full((n_levels, most), -1, np.int64)  # some value of each subtree, to look up its parent
    n_nodes = np.zeros(n_levels, np.int64)
    for level in range(n_levels):
        for v in range(n_values):
            first[level, codes[level, v]] = v
            n_nodes[level] = max(n_nodes[level], np.int64(codes[level, v]) + 1)
    extra, surplus, deficit = np.empty(most), np.empty(most), np.empty(most)
    for c in range(out.shape[0]):
        n = 0
        for e in range(starts[c], starts[c + 1]):
            n += counts[e]
        for v in range(n_values):
            extra[v] = -q[v]
        for e in range(starts[c], starts[c + 1]):
            extra[values[e]] += counts[e] / n
        n_children = n_values
        for level in range(n_levels):
            surplus[: n_nodes[level]] = 0.0
            deficit[: n_nodes[level]] = 0.0
            for child in range(n_children):
                # Level 0 may already join values; moving mass there is free because its height is 0.
                v = child if level == 0 else first[level - 1, child]
                if v < 0:
                    continue
                parent = codes[level, v]
                if extra[child] > 0:
                    surplus[parent] += extra[child]
                else:
                    deficit[parent] -= extra[child]
            moved = 0.0
            for node in range(n_nodes[level]):
                moved += min(surplus[node], deficit[node])
                extra[node] = surplus[node] - deficit[node]
            n_children = n_nodes[level]
            out[c] += level / height * moved if height else 0.0
    return out


@compiled
def most_in_subtrees(starts: Counts, values: Codes, counts: Counts, codes: Codes, q: Floats, t: float) -> Floats:
    """Return a bound on the part of each class within ``t`` of the overall distribution, by ``tree_distances``.

    At every level, the shares of the subtrees differ by at most t·H/(level + 1) in total.
    """
    out = np.zeros(starts.shape[0] - 1)
    n_levels, n_values = codes.shape
    height = n_levels - 1
    most = most_nodes(codes)
    caps = np.zeros((n_levels, most))
    for level in range(height):
        for v in range(n_values):
            caps[level, codes[level, v]] += q[v]
    held = np.zeros(most)
    r, own, ratios = np.empty(n_values), np.empty(n_values), np.empty(n_values)
    for c in range(out.shape[0]):
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
        out[c] = best
    return out
