"""Other requirements and algorithms on a terminal, a line each."""

from __future__ import annotations

from shoal.alternatives.compare import Comparison, Entry
from shoal.alternatives.frontier import Frontier
from shoal.alternatives.recommend import Exploration, beaten
from shoal.cli.columns import Columns, console, text
from shoal.report.essentials import worth
from shoal.text.figures import format_count, format_number, format_share

_SWEPT = {"max_suppression": "suppress\nat most"}


_FIGURES = ("sup-\npressed", "classes", "worst\nrisk")


def show_frontier(frontier: Frontier, policy_point: int | None = None) -> None:
    """Show one line per release with its parameters and cost; ``own`` is the index of the policy itself."""
    swept = list(frontier.points[0].asked)
    unsolved = any(not point.proved for point in frontier)  # otherwise nothing distinguishes them
    head = ("", *(_SWEPT.get(name, name) for name in swept), frontier.objective, *_FIGURES, "levels", *[""] * unsolved)
    table = Columns(*head, texts=(0, len(head) - 1) if unsolved else (0,))
    worse = beaten(frontier)
    for i, point in enumerate(frontier):
        parameters = [
            format_share(value, 1) if name == "max_suppression" else f"{value:g}" for name, value in point.asked.items()
        ]
        rank = (f"({i + 1}.)" if worse[i] else f"{i + 1}.") + (" *" if i == policy_point else "")
        if not point.feasible:
            table.add(rank, *parameters, *[""] * 5, point.state)
            continue
        levels = " ".join("·" if level is None else str(level) for level in (point.levels or {}).values())
        figures = [
            format_number(point.loss or 0),
            format_number(point.suppressed or 0),
            format_number(point.classes or 0),
        ]
        state = "proved" if point.proved else "not proved"
        risk = f"1 in {round(1 / (point.risk or 1))}"
        table.add(rank, *parameters, *figures, risk, levels, *[state] * unsolved)
    table.show(console)
    columns = next((point.levels for point in frontier if point.levels), None)
    proved = "" if unsolved else f" Every {frontier.objective} is proved optimal."
    legend = (
        f"Levels of {', '.join(columns)}.{proved}" if columns else "No release satisfies any of these requirements."
    )
    console.print(text(legend))
    for reason in dict.fromkeys(point.reason for point in frontier if point.state in ("refused", "cannot be told")):
        console.print(text(f"Not released: {reason}.", style="yellow"))
    if any(worse):
        note = "(In brackets): another release has no more loss, no more risk and equally strict requirements."
        console.print(text(note))
    if policy_point is not None:
        console.print(text("* The policy itself."))


def show_exploration(exploration: Exploration) -> None:
    """Show the points, then the recommendations for the tolerable risk."""
    show_frontier(exploration.frontier, exploration.own)
    console.print()
    for recommendation in exploration.recommendations:
        console.print(text(recommendation.sentence))
    console.print(text("These are recommendations; the publisher decides.", style="dim"))


_PURPOSES = {
    "tables": "For tables, the same labels in the whole column (single_dimensional):",
    "analysis": "For analysis, each class separately (local):",
    None: "",
}


def show_comparison(comparison: Comparison, *, verbose: bool = False) -> None:
    """Show the two purposes first, then the cost of each algorithm; ``verbose`` adds its loss in every measure."""
    answers = sorted((e for e in comparison if e.outcome == "found"), key=lambda e: e.loss[comparison.objective])
    with_queries = any(e.query_error is not None for e in answers)
    head = (
        "algorithm",
        comparison.objective,
        "classes",
        "suppressed",
        *["query error"] * with_queries,
        "time",
        "memory",
        "",
    )
    effort = Columns(*head, texts=(0, len(head) - 1))
    for entry in answers:
        effort.add(
            entry.algorithm,
            format_number(entry.loss[comparison.objective]),
            format_number(entry.classes or 0),
            format_number(entry.suppressed or 0),
            *[f"{(entry.query_error or {}).get('median', 0):.1%}"] * with_queries,
            f"{entry.seconds or 0:.2f} s",
            "–" if entry.memory is None else f"{entry.memory:,.0f} MB",
            worth(entry, comparison.objective),
        )
    for entry in comparison.purposes:
        if entry.outcome == "found":
            console.print(text(f"{_PURPOSES[entry.purpose]} {_cost(entry, comparison.objective)}", style="bold"))
    if any(entry.outcome == "found" for entry in comparison.purposes):
        console.print()
    if answers:
        effort.show(console)
    console.print(text(f"{format_count(comparison.records, 'record')}; the smallest {comparison.objective} first."))
    if answers and verbose:
        console.print()
        lost = Columns("algorithm", *answers[0].loss)
        for entry in answers:
            lost.add(entry.algorithm, *(compact(value) for value in entry.loss.values()))
        lost.show(console)
        for entry in answers:
            if entry.claim:
                console.print(text(f"{entry.algorithm} proved: {entry.claim}."))
    for entry in (*comparison.purposes, *comparison):
        if entry.outcome != "found":
            console.print(text(f"{entry.name}: {entry.outcome}. {entry.reason}", style="yellow"))


def _cost(entry: Entry, objective: str) -> str:
    suppressed = f", {format_count(entry.suppressed, 'record')} suppressed" if entry.suppressed else ""
    classes = format_count(entry.classes or 0, "class")
    return f"{objective} {format_number(entry.loss[objective])} in {classes}{suppressed}."


def compact(value: float) -> str:
    """Format with three digits and a letter for the power of a thousand."""
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if 10**power <= abs(value) < 10 ** (power + 3):
            return f"{value / 10**power:.3g} {letter}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.3g}"
