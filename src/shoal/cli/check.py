"""``shoal check``, ``shoal attack`` and ``shoal verify``: judge a table or a release; the exit code is the verdict."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import exits
from shoal.cli.options import (
    Encoding,
    Force,
    Header,
    PolicyFile,
    Printing,
    Reading,
    Rows,
    Separator,
    Strict,
    with_options,
)
from shoal.cli.signals import loading
from shoal.cli.targets import check_text_target
from shoal.errors import PublicationError


@with_options
def check(
    data: Rows,
    policy: PolicyFile,
    *,
    original: Annotated[
        str | None,
        typer.Option(
            help="The table before anonymization: distributions (t-closeness) are compared with it instead of DATA "
            "itself, and its people are attacked if the policy limits attacks. A file, table:name "
            "next to DATA, or a URI followed by #name."
        ),
    ] = None,
    previous: Annotated[
        list[str] | None,
        typer.Option(
            help="An earlier release of the same people, specified like the original; may be repeated. "
            "The policy must also hold for all the releases together. Needs --original."
        ),
    ] = None,
    reading: Reading,
    report: Annotated[
        Path | None,
        typer.Option(help="Write an HTML report of what fails, where and what to do to this file; it shows no values."),
    ] = None,
    printing: Printing,
    strict: Strict = False,
    force: Force = False,
) -> None:
    """Check whether a table satisfies a policy, and whether it may be published.

    Exit 0 if the policy holds, 1 if it fails, 2 if that cannot be determined; with --strict 3 if it holds, but the
    table must not be published.
    """
    with loading():
        from shoal.cli.terminal.verdicts import show_check
        from shoal.pipeline import check as run
        from shoal.policy import Policy

        if report is not None:
            import shoal.report.failing  # noqa: F401  (here, as an import must not be interrupted)
    loaded_policy = Policy.load(policy)
    check_text_target(report, force, [Path(data), policy, *loaded_policy.files])
    rows = reading.opened(data)
    truth = None if original is None else reading.opened_beside(original, rows)
    earlier_releases = [reading.opened_beside(other, rows) for other in previous or ()]
    verdicts = run(rows, loaded_policy, original=truth, previous=earlier_releases, report=report, force=force)
    exits.written += [] if report is None else [str(report)]
    printing.show(verdicts.as_dict, lambda: show_check(verdicts))
    if strict and verdicts.holds and verdicts.publication == "do not publish":
        raise typer.Exit(PublicationError.exit_code)
    raise typer.Exit(exits.OUTCOMES[verdicts.outcome])


@dataclass(frozen=True)
class KnowledgeOptions:
    """What the intruder knows, and how many people are attacked."""

    register: Annotated[
        Path | None, typer.Option(help="A register of people with names, linked instead of those of the original.")
    ] = None
    knows: Annotated[
        str | None,
        typer.Option(help="Quasi-identifiers that the intruder knows, as in age,zip; by default all."),
    ] = None
    control: Annotated[Path | None, typer.Option(help="People similar to those in the release who are not in it.")] = (
        None
    )
    previous: Annotated[Path | None, typer.Option(help="Another release of the same people.")] = None
    id: Annotated[
        str | None,
        typer.Option(help="A column of release and original that identifies people; the intruder never reads it."),
    ] = None
    excludes: Annotated[
        int, typer.Option(help="The number of values that background knowledge rules out for a person.")
    ] = 1
    sample: Annotated[int, typer.Option(help="The largest number of targets, drawn at random; 0 for all.")] = 10_000


@with_options
def attack(
    release: Annotated[Path, typer.Argument(help="The table to attack: CSV or Parquet.", show_default=False)],
    policy: PolicyFile,
    *,
    original: Annotated[
        Path | None,
        typer.Option(help="The table the release was made from: its people are the targets, its values the truth."),
    ] = None,
    knowledge: KnowledgeOptions,
    printing: Printing,
    separator: Separator = None,
    encoding: Encoding = None,
    header: Header = None,
) -> None:
    """Attack a release: link, infer, intersect; exit 1 if a measured limit is exceeded, 2 if undetermined."""
    with loading():
        from shoal.attacks.run import Intruder
        from shoal.attacks.run import attack as run
        from shoal.cli.terminal.verdicts import show_attacks
        from shoal.engines.opening import engine_of
        from shoal.policy import Policy

    loaded_policy = Policy.load(policy)
    with printing.progress() as progress:
        engine = engine_of(release, separator=separator, encoding=encoding, header=header)
        progress("attacking", 0)
        intruder = Intruder(
            knows=[name.strip() for name in knowledge.knows.split(",")] if knowledge.knows else (),
            register=knowledge.register,
            previous=knowledge.previous,
            excludes=knowledge.excludes,
        )
        attacks = run(
            engine,
            original=original,
            policy=loaded_policy,
            intruder=intruder,
            control=knowledge.control,
            id=knowledge.id,
            sample=knowledge.sample or None,
        )
    limits = [limit.judge(attacks, "" if original else "needs the original") for limit in loaded_policy.limits]
    exceeded = [verdict.asked for verdict in limits if verdict.outcome == "fails"]
    judged = {"exceeded": exceeded, "limits": [verdict.as_dict() for verdict in limits]}
    printing.show(lambda: attacks.as_dict() | judged, lambda: show_attacks(attacks, limits))
    if any(not verdict.holds for verdict in limits):
        raise typer.Exit(1 if exceeded else 2)


@with_options
def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate, JSON.", show_default=False)],
    release: Annotated[
        str,
        typer.Argument(
            help="The released table: CSV or Parquet, a folder of Parquet files, or postgresql://…, duckdb://…, "
            "spark://…",
            show_default=False,
        ),
    ],
    *,
    original: Annotated[
        str | None,
        typer.Option(
            help="The table that the release was made from, specified as for check: with it, requirements are "
            "judged that need the original, and with --receipt the table itself is checked."
        ),
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option(help="The receipt written by anonymize --receipt: with it, the digests of the input are checked."),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="The public key of the expected signer.")] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "-p",
            "--policy",
            help="Your own policy: its requirements decide, beside those of the certificate.",
            show_default=False,
        ),
    ] = None,
    reading: Reading,
    printing: Printing,
) -> None:
    """Recount a release and compare it with its certificate.

    Exit 0 if every requirement holds and nothing contradicts the certificate, 1 if something does, 2 if a requirement
    cannot be checked.
    """
    with loading():
        from shoal.cli.terminal.verdicts import show_verification
        from shoal.verify.certified import require_certificate, verify_certificate

    require_certificate(certificate)  # before the rows: the two files may have been swapped
    rows = reading.opened(release)
    truth = None if original is None else reading.opened_beside(original, rows)
    verification = verify_certificate(certificate, rows, original=truth, receipt=receipt, key=key, policy=policy)
    printing.show(verification.as_dict, lambda: show_verification(verification))
    raise typer.Exit(exits.OUTCOMES[verification.outcome])
