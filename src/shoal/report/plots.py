"""Charts of single results: a comparison of algorithms, an exploration, a hierarchy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.alternatives.compare import Comparison
from shoal.alternatives.recommend import Exploration
from shoal.inspection.preview import Preview
from shoal.report.drawings import frontier_plot, number_axis, row_axis
from shoal.report.essentials import worth
from shoal.report.lettering import cut_label, rows_height
from shoal.report.pictures import frontier_in_words
from shoal.report.svg import EDGE, LETTER, Block, Chart, Plot, TextMark
from shoal.text.figures import format_count, format_number
from shoal.text.showing import shows

WIDTH = 680  # pixels of a chart
KIND_COLOURS = {"full domain": "accent", "cuts": "second", "cells": "good"}


@shows("Comparison", "chart")
def comparison_chart(comparison: Comparison) -> Chart:
    """Draw the loss of each algorithm with its search time, the smallest loss first."""
    entries = sorted(
        (entry for entry in comparison if entry.outcome == "found"), key=lambda entry: entry.loss[comparison.objective]
    )
    up = row_axis([entry.algorithm for entry in entries])
    losses = [entry.loss[comparison.objective] for entry in entries]
    texts = [
        f"{format_number(loss)}, {entry.seconds or 0:.2f} s{', proved' * bool(worth(entry, comparison.objective))}"
        for loss, entry in zip(losses, entries, strict=True)
    ]
    margin = 16 + LETTER * max(map(len, texts), default=0)
    across = number_axis(0.0, max(losses, default=0.0) or 1.0, comparison.objective, WIDTH - up.room - margin)
    blocks = [
        Block(0.0, loss, i + 0.2, i + 0.8, KIND_COLOURS[entry.kind], name=f"{entry.algorithm}: {text}")
        for i, (loss, text, entry) in enumerate(zip(losses, texts, entries, strict=True))
    ]
    labels = [TextMark((across.high, i + 0.5), text, right=8) for i, text in enumerate(texts)]
    legend = tuple(
        (kind, colour, "square") for kind, colour in KIND_COLOURS.items() if any(e.kind == kind for e in entries)
    )
    height = rows_height(22, [entry.algorithm for entry in entries])
    plot = Plot(across, up, height, (*blocks, *labels), legend, WIDTH, margin)
    best = f"; {entries[0].algorithm} has the smallest" if entries else ""
    described = (
        f"{comparison.objective} of {format_count(len(entries), 'algorithm')}{best}. Beside each its search time."
    )
    return Chart(plot, "comparison-chart", f"{comparison.objective} by algorithm", described)


@shows("Exploration", "chart")
def exploration_chart(exploration: Exploration) -> Chart:
    """Draw loss against risk; mark the recommended release if there is one recommendation, else the policy's own."""
    name = "recommended" if len(exploration.recommendations) == 1 else "this policy"
    return Chart(
        replace(frontier_plot(exploration.frontier, exploration.chosen, name), height=300, outer_width=480),
        "exploration-chart",
        f"{exploration.frontier.objective} against risk",
        frontier_in_words(exploration.frontier, exploration.own),
    )


@shows("Preview", "chart")
def hierarchy_chart(preview: Preview) -> Chart:
    """Draw every level of a hierarchy as a row of boxes, as wide as the record counts of the labels."""
    table = preview.hierarchy.table
    order = np.lexsort(table)  # by the top's code, then the next level's, …: leaves of one label stand together
    ends = np.concatenate([[0], np.cumsum(preview.counts[order])])
    levels = sorted(preview.levels, key=lambda level: -level.number)
    names = [f"level {level.number}" for level in levels]
    up = row_axis(names)
    pixels = WIDTH - 2 * EDGE - up.room
    records = max(1, preview.records)
    marks: list[Block | TextMark] = []
    for row, level in enumerate(levels):
        codes = table[level.number][order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for first, last in zip(starts, [*starts[1:], len(codes)], strict=True):
            begin, end = int(ends[first]), int(ends[last])
            if end == begin:
                continue
            label, wide = level.labels[codes[first]], (end - begin) / records * pixels
            tip = f"{label}: {format_count(end - begin, 'record')}"
            marks.append(Block(begin, end, row, row + 1, "accent", 0.15, outlined=wide >= 3, name=tip))
            letters = int((wide - 6) / LETTER)
            if letters >= min(3, len(label)):
                marks.append(TextMark(((begin + end) / 2, row + 0.5), cut_label(label, letters)))
    across = replace(number_axis(0.0, records, "records", pixels, whole=True, ends=False), grid=False)
    plot = Plot(across, up, 34 * len(levels), tuple(marks), outer_width=WIDTH)
    described = f"{format_count(len(levels), 'level')} over {format_count(preview.records, 'record')}, the top above."
    return Chart(plot, "hierarchy-chart", f"Hierarchy of {preview.column}", described)
