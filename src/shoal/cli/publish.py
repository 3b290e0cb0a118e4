"""``shoal anonymize``, ``shoal apply`` and ``shoal keys``: write files for publication."""

import json as jsonlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import exits
from shoal.cli.alternatives import solve_frontier
from shoal.cli.options import (
    Force,
    PasswordFile,
    PolicyFile,
    Printing,
    Reading,
    Rows,
    Strict,
    Verbose,
    password_in,
    with_options,
)
from shoal.cli.signals import loading
from shoal.cli.targets import check_different, check_text_target
from shoal.errors import OutputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from shoal.release import Release
    from shoal.search.problem import Progress


@dataclass(frozen=True)
class Companions:
    """The files that are written with a release, and the keys of its certificate."""

    certificate: Annotated[Path | None, typer.Option(help="Write the certificate, JSON, to this file.")] = None
    recoding: Annotated[
        Path | None,
        typer.Option(
            help="Write the recoding to this file, for shoal apply. It lists values of the data: keep it "
            "with the data, do not publish it."
        ),
    ] = None
    report: Annotated[Path | None, typer.Option(help="Write a report, HTML, to this file.")] = None
    codebook: Annotated[
        Path | None,
        typer.Option(
            help="Write a codebook, CSV, to this file: for every text of the release the range, or the members of the "
            "set, that it stands for. It may be published with the release."
        ),
    ] = None
    receipt: Annotated[
        Path | None,
        typer.Option(
            help="Write the receipt, with details that the certificate must not disclose, to this file. Keep it with "
            "the data, do not publish it: shoal verify --receipt needs it."
        ),
    ] = None
    receipt_key: Annotated[
        Path | None,
        typer.Option(help="An earlier receipt whose key is reused, so that the certificate is the same again."),
    ] = None
    sign: Annotated[
        Path | None, typer.Option(help="Sign the certificate with this private key, created by shoal keys.")
    ] = None
    password_file: PasswordFile = None
    attacks: Annotated[
        bool | None,
        typer.Option(
            "--attacks/--no-attacks",
            help="Run all attacks on the release for the certificate too. By default, a report runs attacks within "
            "a fixed amount of work; with --no-attacks, none.",
            show_default=False,
        ),
    ] = None
    show_originals: Annotated[
        bool,
        typer.Option(
            "--show-originals",
            help="Show a few original records in the report, before and after; do not publish such a report. By "
            "default, the examples are constructed.",
        ),
    ] = False

    @property
    def sources(self) -> list[Path]:
        """The files that are read."""
        return [path for path in (self.receipt_key, self.sign, self.password_file) if path]

    @property
    def targets(self) -> dict[str, Path | None]:
        """The files that will be written."""
        return {
            "certificate": self.certificate,
            "report": self.report,
            "codebook": self.codebook,
            "recoding": self.recoding,
            "receipt": self.receipt,
        }

    def keys(self) -> "tuple[bytes | None, Ed25519PrivateKey | None]":
        """Read the key of the digests and the signing key, if they are given."""
        with loading():
            from shoal.release.receipt import key_of, read_receipt
            from shoal.release.signatures import read_private

        receipt_key = None if self.receipt_key is None else key_of(read_receipt(self.receipt_key))
        if self.sign is None:
            return receipt_key, None
        return receipt_key, read_private(self.sign, password=password_in(self.password_file))

    def check_targets(self, output: str, sources: Iterable[Path], *, force: bool) -> None:
        """Reject a release or companion file that would replace a source or another output."""
        with loading():
            from shoal.release import refuse_to_overwrite

        sources = [*sources, *self.sources]
        for source in sources:
            refuse_to_overwrite(source, output)
        check_different({"the release": output} | {f"its {kind}": path for kind, path in self.targets.items()})
        for target in self.targets.values():
            check_text_target(target, force, sources)

    def refuse_frontier(self, output: str | None) -> None:
        """Reject options for a single release with --frontier, which compares several releases and writes none."""
        single_release = {"--report": self.report, "--certificate": self.certificate, "--recoding": self.recoding}
        single_release |= {"--receipt": self.receipt, "--sign": self.sign, "--codebook": self.codebook}
        for option, value in {**single_release, "--attacks": self.attacks}.items():
            if value:
                raise OutputError(
                    f"--frontier compares releases, but {option} applies to a single one", "omit one of them"
                )
        if output is not None:
            raise OutputError("--frontier compares releases and writes none", "omit -o")

    def attacked(self, release: "Release", progress: "Progress") -> "Release":
        """Return the release with the requested attacks, or those that its report runs: which are findings, too."""
        wanted = self.attacks or (self.attacks is None and self.report is not None)
        if not wanted or release.attacks is not None:  # limits in the policy have run their own
            return release
        progress("attacking", 0)
        if self.attacks:
            return release.attacked()
        with loading():
            from shoal.report.intrusion import within_budget

        return release.with_attacks(within_budget(release))

    def write(
        self, release: "Release", proof: dict[str, Any], signer: "Ed25519PrivateKey | None", *, force: bool
    ) -> dict[str, Any]:
        """Write the companion files of a saved release; return its certificate, signed if a key is given."""
        with loading():
            from shoal.engines.formats.atomic_files import write_text
            from shoal.release.receipt import receipt_of, write_receipt
            from shoal.release.signatures import sign

            if self.recoding is not None:
                from shoal.release.replay import save_recoding
            if self.codebook is not None:
                from shoal.utility.ranges import codebook_text
            if self.report is not None:
                import shoal.report.html  # noqa: F401  (here, as an import must not be interrupted)
        if self.receipt is not None:  # before the certificate, whose digests could not be checked without it
            write_receipt(receipt_of(release, proof), self.receipt, force=force)
            exits.written.append(str(self.receipt))
        if signer is not None:
            proof = sign(proof, signer)
        if self.certificate is not None:
            write_text(self.certificate, jsonlib.dumps(proof, indent=2, ensure_ascii=False) + "\n", force=force)
            exits.written.append(str(self.certificate))
        if self.codebook is not None:
            write_text(self.codebook, codebook_text(release), force=force)
            exits.written.append(str(self.codebook))
        if self.recoding is not None:
            save_recoding(release, self.recoding, force=force)
            exits.written.append(str(self.recoding))
        if self.report is not None:
            tried = () if self.attacks is False else None
            originals = self.show_originals
            release.report(self.report, certificate=proof, attacks=tried, show_originals=originals, force=force)
            exits.written.append(str(self.report))
        return proof


ReleaseFile = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        help="The release: .csv, .tsv and .txt are written as text, .parquet and .pq as Parquet, .xlsx, .sav and "
        ".dta for Excel, SPSS and Stata; engines also write a folder, or table:schema.name. Required, unless "
        "--frontier is given.",
    ),
]


@with_options
def anonymize(
    data: Rows,
    policy: PolicyFile,
    *,
    output: ReleaseFile = None,
    reading: Reading,
    companions: Companions,
    ranges: Annotated[
        str | None,
        typer.Option(
            help="Extra columns for released ranges, whatever the policy says: bounds (age_from, age_to), midpoint "
            "(age_mid), or text for none. To check such a file, its policy needs the same under release.ranges."
        ),
    ] = None,
    midpoints: Annotated[
        bool, typer.Option("--midpoints", help="The same as --ranges midpoint: a column age_mid beside age.")
    ] = False,
    frontier: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of writing a release, solve for each of these values and compare, such as k=2,3,5,10; for k, "
            "l, t and max_suppression. If repeated, every combination is solved."
        ),
    ] = None,
    printing: Printing,
    verbose: Verbose = False,
    strict: Strict = False,
    force: Force = False,
) -> None:
    """Find the release with the least information loss that satisfies the policy, verify it, and write it."""
    with loading():
        from shoal.cli.terminal.releases import show_release
        from shoal.models.finding import Finding
        from shoal.pipeline import anonymize as run
        from shoal.policy import Policy

    loaded_policy = Policy.load(policy)
    if midpoints and ranges not in (None, "midpoint"):
        raise OutputError(f"--midpoints is --ranges midpoint, not {ranges}", "omit one of them")
    ranges = "midpoint" if midpoints else ranges
    if ranges is not None:
        loaded_policy = loaded_policy.with_release(ranges=ranges)
    if frontier:
        companions.refuse_frontier(output)
        solve_frontier(reading.opened(data), loaded_policy, frontier, printing)
        return
    if output is None:
        raise OutputError("-o: specify the file for the release", "or vary parameters with --frontier k=2,5,10")
    receipt_key, signer = companions.keys()
    companions.check_targets(output, [Path(data), policy, *loaded_policy.files], force=force)
    with printing.progress() as progress:
        release = run(reading.opened_for(data, output, force=force), loaded_policy, strict=strict, progress=progress)
        release = companions.attacked(release, progress)
        if strict:
            release.verdicts.require_publishable()
        if receipt_key is not None:
            release = release.with_key(receipt_key)
        progress("writing", 0)
        proof = release.save(output, force=force)
    exits.written.append(output)
    proof = companions.write(release, proof, signer, force=force)
    companion_files = companions.targets
    about_file = [Finding.from_dict(line) for line in proof["findings"] if line["kind"] == "writing"]
    printing.show(lambda: proof, lambda: show_release(release, output, about_file, companion_files, verbose=verbose))


@with_options
def apply(
    recoding: Annotated[Path, typer.Argument(help="The recoding written by anonymize --recoding.", show_default=False)],
    data: Rows,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            help="The release: .csv, .parquet, .xlsx, .sav, .dta, a folder, or table:schema.name.",
            show_default=False,
        ),
    ],
    *,
    reading: Reading,
    printing: Printing,
    strict: Strict = False,
    force: Force = False,
) -> None:
    """Recode new rows like earlier ones; rows that would violate the policy are held back."""
    with loading():
        from shoal.cli.terminal.releases import show_replay
        from shoal.release import refuse_to_overwrite
        from shoal.release.replay import replay

    for source in (recoding, Path(data)):
        refuse_to_overwrite(source, output)
    with printing.progress():
        replayed = replay(recoding, reading.opened_for(data, output, force=force), strict=strict)
        replayed.save(output, force=force)
    exits.written.append(output)
    printing.show(replayed.as_dict, lambda: show_replay(replayed, output))


@with_options
def keys(
    name: Annotated[str, typer.Argument(help="The keys will be NAME.key and NAME.pub.", show_default=False)],
    *,
    password_file: PasswordFile = None,
    printing: Printing,
    force: Force = False,
) -> None:
    """Create a key pair: NAME.key signs certificates and stays private, NAME.pub verifies them and is published."""
    with loading():
        from shoal.cli.terminal.releases import show_keys
        from shoal.release.signatures import key_fingerprint, make_keys, read_public

    private, public = make_keys(name, password=password_in(password_file), force=force)
    fingerprint = key_fingerprint(read_public(public))
    written = {"private": str(private), "public": str(public), "key": fingerprint}
    printing.show(lambda: written, lambda: show_keys(private, public, fingerprint, locked=password_file is not None))
