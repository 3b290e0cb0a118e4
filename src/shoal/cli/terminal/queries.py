"""Plans and answers of private queries on a terminal."""

from __future__ import annotations

from shoal.cli.columns import Columns, console, text
from shoal.results.dp.answers import Answers, QueryPlan
from shoal.results.dp.synthesis import SyntheticTable
from shoal.text.figures import format_number


def show_plan(plan: QueryPlan) -> None:
    """Print what each statistic costs and how exact it will be."""
    table = Columns("query", "statistic", "noise", f"± ({plan.confidence:.0%})", "cost", texts=(0, 1, 2))
    for piece in plan.pieces:
        table.add(piece.ask, piece.statistic, piece.noise, format_number(piece.width), piece.cost)
    table.show(console)
    console.print(text(f"\nCost: {plan.cost}. Protected: {plan.unit}. Nothing was spent."))
    if plan.threshold is not None:
        console.print(text(f"A group is shown if about {format_number(plan.threshold)} people or more are in it."))
    if plan.left is not None:
        console.print(text(f"Left afterwards: {plan.left}."))
    for note in plan.notes:
        console.print(text(note, "dim"))


def show_noisy_answers(answers: Answers) -> None:
    """Print the figures with their intervals."""
    names = list(dict.fromkeys(name for answer in answers.answers for name in answer.group))
    interval = f"{answers.confidence:.0%} interval"
    table = Columns("query", *names, "of", "value", interval, texts=tuple(range(len(names) + 2)))
    for answer in answers.answers:
        figure = answer.figure
        group = (answer.group.get(name) or "–" for name in names)
        ends = f"{format_number(figure.low)} … {format_number(figure.high)}"
        table.add(answer.ask, *group, figure.of, format_number(figure.value), ends)
    table.show(console)
    console.print(text(f"\nSpent: {answers.cost}. Protected: {answers.unit}."))
    if answers.left is not None:
        console.print(text(f"Left: {answers.left}."))
    for note in answers.notes:
        console.print(text(note, "dim"))


def show_synthetic(synthetic: SyntheticTable, path: str) -> None:
    """Print what a synthetic table keeps and what it cost."""
    console.print(text(f"Written: {path}, {format_number(synthetic.table.num_rows)} rows that belong to nobody."))
    pairs = "; ".join(f"{a} and {b}" for a, b in synthetic.pairs) or "none"
    console.print(text(f"Counted in pairs: {pairs}."))
    console.print(text(f"Spent: {synthetic.cost}. Protected: {synthetic.unit}."))
    if synthetic.left is not None:
        console.print(text(f"Left: {synthetic.left}."))
    for note in synthetic.notes:
        console.print(text(note, "dim"))
