"""Homomorphic encryption: keypair, encrypt and decrypt for the owner of the data, compute for somebody else."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import exits
from shoal.cli.options import (
    Force,
    PasswordFile,
    Printing,
    Reading,
    Rows,
    Several,
    names_in,
    pairs_in,
    password_in,
    range_in,
    whole_in,
    with_options,
)
from shoal.cli.signals import loading
from shoal.cli.targets import check_text_target
from shoal.errors import PolicyError

PublicKey = Annotated[Path, typer.Option(help="The public key, NAME.public.key.", show_default=False)]
SecretKey = Annotated[
    Path, typer.Option(help="The secret key, NAME.secret.key, which only its owner has.", show_default=False)
]
Target = Annotated[Path, typer.Option("-o", "--output", help="The file to write.", show_default=False)]


@with_options
def keypair(
    name: Annotated[
        str, typer.Argument(help="The name of the owner: NAME.secret.key and NAME.public.key are written.")
    ],
    *,
    scheme: Annotated[
        str, typer.Option(help="bfv: exact, whole numbers and decimals; ckks: approximate, any numbers.")
    ] = "bfv",
    degree: Annotated[int, typer.Option(help="The polynomial degree, 8192 or 16384; weaker ones are refused.")] = 8192,
    password_file: PasswordFile = None,
    printing: Printing,
    force: Force = False,
) -> None:
    """Create the two keys of homomorphic encryption: a secret one to decrypt, a public one to encrypt and compute."""
    with loading():
        from shoal.results.he.keys import EncryptionKey, make_key_pair

    secret, public = make_key_pair(name, scheme=scheme, degree=degree, password=password_in(password_file), force=force)
    exits.written += [str(secret), str(public)]
    encryption_key = EncryptionKey.load(public)
    printed = {
        "secret": str(secret),
        "public": str(public),
        "key": encryption_key.identity,
        "parameters": encryption_key.parameters.as_dict(),
    }

    def show() -> None:
        protected = "" if password_file is None else ", encrypted with the password"
        print(f"{secret}: decrypts; stays on this computer{protected}")
        print(f"{public}: encrypts and computes; give it to those who do")
        print(f"key {encryption_key.identity}: compare it by telephone, as whoever replaces the public key can decrypt")

    printing.show(lambda: printed, show)


@with_options
def encrypt(
    data: Rows,
    *,
    key: PublicKey,
    bounds: Annotated[
        Several,
        typer.Option(
            help="A column to encrypt, with the least and largest plausible value, which stay readable, as in "
            "age=0:120; may be repeated, like all that follow."
        ),
    ] = None,
    decimals: Annotated[Several, typer.Option(help="Decimals of a column, as in cost=2; whole numbers else.")] = None,
    indicator: Annotated[
        Several, typer.Option(help="Encrypt 1 where a column has a value and 0 elsewhere, as in infected=yes.")
    ] = None,
    skip_missing: Annotated[bool, typer.Option("--skip-missing", help="Leave rows without a value out.")] = False,
    output: Target,
    reading: Reading,
    printing: Printing,
    force: Force = False,
) -> None:
    """Encrypt columns of a table, so that others can compute on them without seeing them."""
    check_text_target(output, force, [Path(data), key])
    with loading():
        from shoal.results.he.encrypt import encrypt as run

    encrypted = run(
        reading.opened(data),
        key,
        bounds={name: range_in(name, text) for name, text in pairs_in(bounds)},
        decimals={name: whole_in(name, text) for name, text in pairs_in(decimals)},
        indicators=pairs_in(indicator),
        skip_missing=skip_missing,
    )
    exits.written.append(str(encrypted.save(output, force=force)))
    printed = {
        "written": str(output),
        "key": encrypted.key,
        "rows": encrypted.n_rows,
        "columns": [column.as_dict() for column in encrypted.columns.values()],
        "bytes": output.stat().st_size,
    }

    def show() -> None:
        columns = ", ".join(encrypted.columns)
        print(f"{output}: {encrypted.n_rows} rows of {columns}, encrypted, {printed['bytes']:,} bytes")
        print("Readable in it: names, bounds and decimals of columns, and the number of rows.")
        print(f"Only the owner of the key {encrypted.key} can decrypt it; compare this with what the owner tells.")

    printing.show(lambda: printed, show)


@with_options
def compute(
    tables: Annotated[list[Path], typer.Argument(help="Encrypted tables.", show_default=False)],
    *,
    key: PublicKey,
    sum: Annotated[Several, typer.Option(help="The sum of a column; may be repeated, like all that follow.")] = None,
    mean: Annotated[Several, typer.Option(help="The mean of a column.")] = None,
    score: Annotated[
        Several,
        typer.Option(
            help="A weighted sum of columns for every row, or the prediction of a linear model, as in "
            "risk=0.5*age+2*stay-3."
        ),
    ] = None,
    regression: Annotated[
        Several, typer.Option(help="Least squares of a column on others with an intercept, as in cost=age,stay.")
    ] = None,
    mask: Annotated[
        bool | None,
        typer.Option(
            "--mask/--no-mask",
            help="Hide all but the totals from the owner of the secret key; the default for keys of the scheme bfv.",
            show_default=False,
        ),
    ] = None,
    output: Target,
    printing: Printing,
    force: Force = False,
) -> None:
    """Compute on encrypted tables with the public key; only the owner of the secret key can read the result."""
    check_text_target(output, force, [*tables, key])
    with loading():
        from shoal.results.he.computation import LinearScore
        from shoal.results.he.compute import compute as run

    computed = run(
        tables,
        key,
        sum=sum or (),
        mean=mean or (),
        score={name: LinearScore.parsed(text) for name, text in pairs_in(score)},
        regression=[(target, *names_in(explaining)) for target, explaining in pairs_in(regression)],
        mask=mask,
    )
    exits.written.append(str(computed.save(output, force=force)))
    opened = computed.computation.opened
    printed = {
        "written": str(output),
        "key": computed.key,
        "opened": list(opened),
        "masked": computed.masked,
        "bytes": output.stat().st_size,
    }

    def show() -> None:
        print(f"{output}: for the owner of the secret key, who will learn {', '.join(opened)}")

    printing.show(lambda: printed, show)


@with_options
def decrypt(
    result: Annotated[Path, typer.Argument(help="An encrypted result.", show_default=False)],
    *,
    key: SecretKey,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="A CSV file for scores, one row per row of the table.")
    ] = None,
    password_file: PasswordFile = None,
    printing: Printing,
    force: Force = False,
) -> None:
    """Decrypt a result with the secret key, check it, and say how exact it is; nothing is shown if it is not right."""
    check_text_target(output, force, [result, key])
    with loading():
        from shoal.engines.formats.atomic_files import write_bytes
        from shoal.results.he.compute import EncryptedResult
        from shoal.results.he.decrypt import decrypt as run

    opened = EncryptedResult.load(result)
    if opened.computation.scores and output is None and not printing.json:
        raise PolicyError("the result has scores of every row", "name a file for them", option="-o scores.csv")
    if output is not None and not opened.computation.scores:
        raise PolicyError("the result has no scores to write", "leave the file out: figures are printed", option="-o")
    results = run(opened, key, password=password_in(password_file))
    if output is not None and results.scores is not None:
        write_bytes(output, results.scores_as_csv(), force=force, private=True)
        exits.written.append(str(output))

    def show() -> None:
        for label, value in results.figures.items():
            inner = value.items() if isinstance(value, dict) else [("", value)]
            errors = results.errors[label] if isinstance(value, dict) else {"": results.errors[label]}
            for term, figure in inner:
                doubt = f", error at most {errors[term]:.2g}" if errors[term] else ""
                print(f"{label}{': ' if term else ''}{term}: {figure} (unverified{doubt})")
        if output is not None and results.scores is not None:
            names = ", ".join(results.scores.column_names)
            print(f"{output}: {names} of {results.n_rows} rows, unverified; only you may read it")
        for note in results.notes:
            print(note)

    printed = results.as_dict()
    if output is not None:
        printed.pop("scores", None)
    printing.show(lambda: printed, show)
