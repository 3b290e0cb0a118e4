"""Columns that are released as they are and single people out, alone or together with the other released columns.

The policy judges the quasi-identifiers. An outsider who knows a person may know every column that nothing keeps secret:
here classes are formed by all of them, and persons are counted, not records.
"""

from collections.abc import Iterator

from shoal.engines.dependence import SmallClasses
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding, shortened
from shoal.models.finding import Finding, Severity
from shoal.text.figures import format_count, format_list, format_number

NEARLY_UNIQUE = 0.5  # of the persons are alone with their value: the column identifies
OFTEN_ALONE = 0.1  # of the persons have a sensitive value that nobody else has
SLIGHT = 0.01  # of the persons: if more are exposed, the table must not be published
ENOUGH = 20  # persons below which unique sensitive values say little about a column
MANY_ANSWERS = 10  # sensitive columns, of which somebody may know as many about a person


def unique_plain(evidence: Evidence) -> Iterator[Finding]:
    """Find plain columns in which at least half of the persons have a value of their own."""
    unique = {name: classes for name, classes in evidence.plain_classes.items() if nearly_unique(classes)}
    if not unique:
        return
    parts = [f"{name!r} ({out_of_all(evidence, classes.alone)})" for name, classes in unique.items()]
    single = len(parts) == 1
    yield finding(
        "unique-plain",
        f"{'Column' if single else 'Columns'} {format_list(shortened(parts))} {'is' if single else 'are'} plain but "
        f"nearly unique: {'it identifies' if single else 'they identify'} people to anyone who knows "
        f"{'it' if single else 'them'}",
        'Set role = "quasi" if outsiders may know the values, or role = "identifier" to remove them',
        list(unique),
        max(classes.alone for classes in unique.values()),
    )


def singled_out(evidence: Evidence) -> Iterator[Finding]:
    """Find plain columns that, with the quasi-identifiers as released, leave people in too small classes."""
    plain = [name for name, classes in evidence.plain_classes.items() if not nearly_unique(classes)]
    together = evidence.small_classes([*evidence.linkable, *plain]) if plain else None
    if together is None or not together.few:
        return
    few_by_column = {name: evidence.small_classes([*evidence.linkable, name]).few for name in plain}
    columns = sorted((name for name in plain if few_by_column[name]), key=lambda name: -few_by_column[name]) or plain
    single = len(columns) == 1
    yield finding(
        "singled-out",
        f"{'Column' if single else 'Columns'} {format_list(shortened([repr(name) for name in columns]))} "
        f"{'is' if single else 'are'} released as {'it is' if single else 'they are'}, and with the quasi-identifiers "
        f"{'it leaves' if single else 'they leave'} {out_of_all(evidence, together.few)} in classes of fewer than "
        f"{evidence.k}, {format_number(together.alone)} of them alone",
        'Set role = "quasi" for what outsiders may know, or role = "identifier" to remove it',
        columns,
        together.few,
        severity_of(together),
    )


def unique_sensitive(evidence: Evidence) -> Iterator[Finding]:
    """Find sensitive columns in which many persons have a value of their own, such as an exact income."""
    for name, classes in evidence.sensitive_classes.items():
        often = classes.people >= ENOUGH and classes.alone > OFTEN_ALONE * classes.people
        if often or nearly_unique(classes):
            yield finding(
                "unique-sensitive",
                f"Sensitive column {name!r} is released to the last digit, and {out_of_all(evidence, classes.alone)} "
                "have a value that nobody else has: anyone who knows it finds their record",
                'Round or group its values so that several people share each, or set role = "quasi"',
                [name],
                classes.alone,
                "stop" if classes.people >= ENOUGH and nearly_unique(classes) else "decide",
            )


def answers_single_out(evidence: Evidence) -> Iterator[Finding]:
    """Find many sensitive columns, such as the answers of a survey, ten of which single people out."""
    names = [name for name, classes in evidence.sensitive_classes.items() if not nearly_unique(classes)]
    if len(names) < MANY_ANSWERS:
        return
    known_answers = names[:MANY_ANSWERS]
    together = evidence.small_classes(known_answers)
    if together.alone > SLIGHT * together.people:
        yield finding(
            "answers-single-out",
            f"{format_count(len(names), 'sensitive column')} are released as they are, and {MANY_ANSWERS} of them "
            f"({format_list(shortened([repr(name) for name in known_answers]))}) single out "
            f"{out_of_all(evidence, together.alone)}",
            'Keep only the columns that are needed, or set role = "quasi" for those that others may know',
            names,
            together.alone,
        )


def nearly_unique(classes: SmallClasses) -> bool:
    """Return whether at least half of the persons are alone in their class."""
    return classes.people > 1 and classes.alone >= NEARLY_UNIQUE * classes.people


def severity_of(classes: SmallClasses) -> Severity:
    """Return how grave it is that persons are in small classes: up to one in a hundred is to be decided on."""
    return "stop" if classes.few > SLIGHT * classes.people else "decide"


def out_of_all(evidence: Evidence, n: int) -> str:
    """Return a number of persons out of all, or of records if no column identifies people."""
    return f"{format_number(n)} of {format_count(evidence.people, evidence.unit)}"
