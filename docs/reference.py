"""Writes the generated parts of the pages from the code: ``python docs/reference.py``.

A generated part stands between ``<!-- code: NAME -->`` and ``<!-- end -->``; ``PARTS`` has a function for each name.
Long parts are folded. With ``--steps`` the output below each piece of Python is computed too, which takes longer. A
test and the build of the site fail if a page differs from the code. The sentences are docstrings, descriptions of
fields and help texts of options: correct them there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import json
import math
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints
from unittest import mock

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import ArgumentInfo

import shoal
from shoal import errors, testing
from shoal.cli import commands
from shoal.hierarchies.builders import BY_KEY
from shoal.models import PopulationModel, ReleaseModel, SensitiveModel
from shoal.models.closeness import DISTANCES
from shoal.models.measured import MeasuredLimit
from shoal.policy import Column, Options, Policy, explain
from shoal.policy.coarsening import Coarsening
from shoal.policy.presets import PRESETS
from shoal.search import SEARCHES
from shoal.search.losses.definitions import LOSSES, WITH_LABEL

HERE = Path(__file__).resolve().parent
PAGES = ("policy.md", "cli.md", "api.md", "models.md", "families.md", "how_it_works.md")
SCHEMA = "schemas/policy.schema.json"
STEP = re.compile(r"^```python\n((?:(?!```).*\n)*)```\n+```text\n((?:(?!```).*\n)*)```$", re.MULTILINE)
MARKED = re.compile(r"(<!-- code: ([\w -]+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)


def written(page: str) -> str:
    """A page with its generated parts brought up to date."""
    return MARKED.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n\n{part[3]}", page)


def printed(code: str, namespace: dict[str, Any] | None = None) -> str:
    """The output of a piece of code; in a namespace, which it changes, only once: the build of the site asks twice."""
    if code not in _OUTPUTS:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, "page", "exec"), {"__name__": "page"} if namespace is None else namespace)
        _OUTPUTS[code] = output.getvalue()
    return _OUTPUTS[code]


_OUTPUTS: dict[str, str] = {}
CONTINUED = frozenset({"tutorial"})  # pages whose pieces of code continue each other, as in a notebook


def namespace_of(page: str) -> dict[str, Any] | None:
    """A namespace for all pieces of code of a page, if they continue each other."""
    return {"__name__": "page"} if page in CONTINUED else None


def step(code: str, output: str) -> str:
    """A piece of code and its output, in Markdown."""
    return f"```python\n{code}```\n\n```text\n{output}```"


def texts() -> dict[str, str]:
    """The pages with generated parts and the schema, by the name of the file in docs/."""
    pages = {name: written((HERE / name).read_text(encoding="utf-8")) for name in PAGES}
    return {**pages, SCHEMA: json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"}


def stale() -> list[str]:
    """The files that differ from the code."""
    return [name for name, text in texts().items() if (HERE / name).read_text(encoding="utf-8") != text]


def schema() -> dict[str, Any]:
    """The JSON schema of a policy, for editors that validate TOML."""
    policy = Policy.model_json_schema()
    policy["description"] = _split(Policy)[0]
    del policy["properties"]["folder"]  # ours: a file cannot say where it lies
    kinds = policy["$defs"]
    file_description = kinds["File"]["description"]
    kinds["File"] = {
        "description": file_description,
        "minLength": 1,
        "type": "string",
    }  # a policy writes the name alone
    kinds["Flat"]["required"] = ["flat"]
    for kind in kinds.values():
        for tag in ("model", "result"):
            if tag in kind.get("properties", {}):
                kind["required"] = [tag, *kind["required"]]
    fields = kinds["Intervals"]["properties"]
    for field in ("origin", "log_from", "bottom", "top"):
        fields[field]["anyOf"].remove({"type": "string"})  # Pydantic's way to write decimals
    edges = {"items": {"type": "number"}, "minItems": 1, "type": "array"}
    fields["intervals"] = {**fields["intervals"], "items": {"exclusiveMinimum": 0, "type": "number"}, "minItems": 1}
    fields["boundaries"] = {
        "anyOf": [edges, {"items": edges, "minItems": 1, "type": "array"}],
        **{name: fields["boundaries"][name] for name in ("description", "title")},
    }
    fields["intervals"].pop("default")
    fields["origin"]["default"] = 0
    kinds["Intervals"]["oneOf"] = [{"required": ["intervals"]}, {"required": ["boundaries"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **policy}


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────────────────


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _folded(summary: str, text: str) -> str:
    """A block that opens on a click, on GitHub as on the site; it must not contain headings."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _doc(thing: Any, paragraphs: int | None = 1) -> str:
    """The first paragraphs of a docstring as Markdown, one a line, without its sections and its example."""
    parts = _split(thing)[0].split("\n\n")[:paragraphs]
    return _markdown("\n\n".join(part.replace("\n", " ") for part in parts))


def _split(thing: Any) -> tuple[str, str]:
    """The text of a docstring before its sections, and its example."""
    text, _, example = (inspect.getdoc(thing) or "").partition("\n\n>>> ")
    if not example:
        text, _, example = text.partition("\n\nExamples\n--------\n>>> ")
    return re.split(r"\n\n\w+\n-{3,}\n", text)[0], example and f">>> {example}"


def _sections(thing: Any) -> str:
    """The sections Parameters, Returns and Raises of a docstring as a list."""
    text = inspect.getdoc(thing) or ""
    bodies = dict(re.findall(r"(?:^|\n\n)(\w+)\n-{3,}\n(.*?)(?=\n\n\w+\n-{3,}\n|$)", text, re.DOTALL))
    entries = {
        name: re.findall(r"^(\S.*)\n((?:    .*(?:\n|$))+)", section, re.MULTILINE) for name, section in bodies.items()
    }

    def lines(name: str, before: str = "") -> Iterator[str]:
        for term, meaning in entries.get(name, ()):
            terms = term if name == "Returns" else ", ".join(f"`{part}`" for part in term.split(", "))
            yield f"- {before}{terms}: {_markdown(re.sub(chr(10) + ' *', ' ', meaning.strip()))}"

    return "\n".join([*lines("Parameters"), *lines("Returns", "returns "), *lines("Raises", "raises ")])


def _example(thing: Any) -> str:
    """The example of a docstring as a code block; test_docstrings.py runs it."""
    example = _split(thing)[1]
    return example and f"\n\n```pycon\n{example}\n```"


def _markdown(text: str) -> str:
    """reStructuredText's ``code`` as Markdown, with stars and brackets outside code escaped."""
    parts = re.split(r"(`[^`]+`)", text.replace("``", "`"))
    return "".join(part if part.startswith("`") else re.sub(r"([*<])", r"\\\1", part) for part in parts)


# ── The policy ──────────────────────────────────────────────────────────────────────────────────────────────


def _values(field: FieldInfo) -> str:
    """The values that a field admits, in words."""
    kinds = [kind for kind in _alternatives(field.annotation) if kind is not NoneType]
    return " or ".join(_kind(kind) for kind in kinds) + _bounds(field)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    is_union = get_origin(annotation) is typing.Union or type(annotation).__name__ == "UnionType"
    return get_args(annotation) if is_union else (annotation,)


def _kind(kind: Any) -> str:
    if get_origin(kind) is typing.Annotated:
        return _kind(get_args(kind)[0])
    if kind is Coarsening:
        return "see [coarser sensitive values](#coarser-sensitive-values)"
    if len(_alternatives(kind)) > 1:  # which kind of hierarchy
        return "see [hierarchies](#hierarchies)"
    if get_origin(kind) is Literal:
        return ", ".join(f"`{json.dumps(value)}`" for value in get_args(kind))
    if get_origin(kind) is tuple:
        return f"list of {_kind(get_args(kind)[0])}".replace("a number", "numbers").replace("a text", "texts")
    if get_origin(kind) is dict:
        return "a table"
    if get_origin(kind) is list:
        return "a list"
    names = {"int": "a whole number", "float": "a number", "Decimal": "a number", "str": "a text"}
    return "`true`, `false`" if kind is bool else names[kind.__name__]


def _bounds(field: FieldInfo) -> str:
    bounds = {sign: getattr(bound, name) for bound in field.metadata for name, sign in _SIGNS if hasattr(bound, name)}
    bounds = {sign: value for sign, value in bounds.items() if value < _UNREACHABLE}
    if {"≥", "≤"} <= set(bounds):
        return f" from {bounds['≥']} to {bounds['≤']}"
    return ",".join(f" {sign} {value}" for sign, value in bounds.items())


_UNREACHABLE = 10**9  # bounds that only protect against overflow
_SIGNS = (("ge", "≥"), ("gt", "above"), ("le", "≤"))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    return "" if field.default is None else f"`{json.dumps(field.default, default=int)}`"


def _fields(part: type[BaseModel], summary: str) -> Callable[[], str]:
    def rows() -> Iterator[tuple[str, ...]]:
        for name, field in part.model_fields.items():
            values = "see below" if name in ("algorithm", "objective") else _values(field)
            yield f"`{name}`", field.description or "", values, _default(field)

    return lambda: _folded(summary, _table(("field", "meaning", "values", "default"), rows()))


def _requirements(select: Callable[[Any], bool], passes: str, summary: str) -> Callable[[], str]:
    def rows() -> Iterator[tuple[str, ...]]:
        for model in (*explain.MODELS, *explain.LIMITS):
            if select(model):
                fields = [(name, field) for name, field in model.model_fields.items() if name != "model"]
                values = "<br>".join(f"`{name}`: {_admitted(field)}" for name, field in sorted(fields, key=_order))
                name = model.model_fields["model"].default
                linked = f"`{name}`" if issubclass(model, MeasuredLimit) else f"[`{name}`](models.md#{name})"
                yield linked, values, _doc(model, None).replace("\n\n", " ")

    return lambda: _folded(summary, _table(("`model`", "fields", passes), rows()))


def _forbidden() -> str:
    rows = []
    for name, kind in explain.RESULTS.items():
        fields = [(field, info) for field, info in kind.model_fields.items() if field != "result"]
        fields.sort(key=lambda field: field[0] in ("doubt", "enforce"))  # common fields come last
        meanings = "<br>".join(f"`{field}`: {info.description}" for field, info in fields)
        rows.append((f"`{name}`", meanings, _doc(kind)))
    return _folded("Every result and its fields", _table(("`result`", "fields", "what is forbidden"), rows))


def _admitted(field: FieldInfo) -> str:
    if field.is_required():
        return _values(field)
    default = _default(field)
    return f"{_values(field)}; {f'default {default}' if default else 'optional'}"


def _order(field: tuple[str, FieldInfo]) -> tuple[bool, bool]:
    return field[0] in ("column", "population"), not field[1].is_required()


def _by_class(model: Any) -> bool:
    return not issubclass(model, ReleaseModel | PopulationModel | MeasuredLimit)


MERGING = {
    "absorbing": "a class that passes still passes after any merge",
    "convex": "a union of passing classes passes, but a failing class may make a passing one fail",
    "table": "no verdict on classes: the release as a whole passes or fails",
}


def _name(model: Any) -> str:
    return str(model.model_fields["model"].default)


def _models(select: Callable[[Any], bool], passes: str) -> Callable[[], str]:
    def rows() -> Iterator[tuple[str, ...]]:
        for model in filter(select, explain.MODELS):
            yield _section_of(model), _doc(model), model.formula, model.merging, f"`{model.figure}`"

    return lambda: _table(("model", passes, "in symbols", "merging", "figure"), rows())


def _section_of(model: Any) -> str:
    """The name of a model, with a link where the page of the models has a section on it."""
    name = _name(model)
    has_section = f"\n### {name}\n" in (HERE / "models.md").read_text(encoding="utf-8")
    return f"[`{name}`](models.md#{name})" if has_section else f"`{name}`"


def _merging() -> str:
    def rows() -> Iterator[tuple[str, str, str]]:
        for merging, meaning in MERGING.items():
            yield merging, ", ".join(_section_of(m) for m in explain.MODELS if m.merging == merging), meaning

    return _table(("merging", "models", "meaning"), rows())


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _published() -> str:
    rows = [
        ("rewritten records", _codes(map(_name, explain.MODELS)), "[models](models.md)"),
        (
            "rewritten records, after attacks on them",
            _codes(map(_name, explain.LIMITS)),
            "[attacks](attacks.md), [policy](policy.md)",
        ),
        (
            "rewritten records, after mining them: result privacy",
            f"`[[forbid]]` with {_codes(explain.RESULTS)}",
            "[result privacy](result_privacy.md)",
        ),
        (
            "invented records from noisy counts, within a budget: differential privacy",
            "`synthesize`",
            "[differential privacy](differential_privacy.md)",
        ),
    ]
    return _table(("what is published", "models in shoal", "where"), rows)


def _disclosure() -> str:
    """Which disclosure a model is about: attribute, if it judges sensitive values; identity, if it counts people."""

    def kind(model: Any) -> str:
        if issubclass(model, MeasuredLimit):
            return "attribute" if model.question == "inference" else "identity"
        if not issubclass(model, SensitiveModel):
            return "presence" if "low" in model.model_fields else "identity"
        return "both" if {"k", "column"} <= set(model.model_fields) and model.figure in ("l", "alpha") else "attribute"

    kinds = {"identity": "identity", "attribute": "attribute", "both": "both", "presence": "that somebody is in it"}

    def rows() -> Iterator[tuple[str, str, str]]:
        for outcome, graded in (("Boolean", False), ("quantitative", True)):
            for name, label in kinds.items():
                models = [m for m in (*explain.MODELS, *explain.LIMITS) if kind(m) == name and _by_figure(m) == graded]
                if models:
                    yield outcome, label, _codes(map(_name, models))

    return _table(("", "disclosure", "models of published tables"), rows())


def _by_figure(model: Any) -> bool:
    """Whether a model limits a figure that can be tolerated to some degree: a risk or a share of unique records."""
    return issubclass(model, MeasuredLimit | ReleaseModel) or model.figure == "risk_max"


def _distances() -> str:
    return _table(("`distance`", "measures"), ((f"`{name}`", _doc(rule)) for name, rule in DISTANCES.items()))


def _presets() -> str:
    def requirements(name: str) -> str:
        models, limits = PRESETS[name].models, PRESETS[name].limits
        return "; ".join([*(model.summary for model in models), *(limit.summary for limit in limits)]) or "no model"

    rows = ((f"`{name}`", requirements(name), preset.note, preset.citation) for name, preset in PRESETS.items())
    return _folded("Every preset", _table(("`preset`", "requires", "how it is read", "written in"), rows))


def _algorithms() -> str:
    def lines() -> Iterator[str]:
        for name, search in SEARCHES.items():
            doc = sys.modules[search.function.__module__].__doc__ or ""
            entries = re.findall(r"^(Needs|Finds)  (.*?)\n(?=\S|\n)", doc, re.MULTILINE | re.DOTALL)
            parts = {key: _markdown(re.sub(r"\s+", " ", text)) for key, text in entries}
            title = _markdown(doc.split("\n", 1)[0])
            full_name, method = title.split(": ", 1)
            section = "optimal" if name in ("exhaustive", "mingen") else name
            summary = method if re.sub(r"\W", "", full_name.lower()) == name.replace("_", "") else title
            yield f"- [`{name}`](algorithms.md#{section}): {summary} *Finds* {parts['Finds']} *Needs* {parts['Needs']}"

    return _folded("Every algorithm", "\n".join(lines()))


def _objectives() -> str:
    rows = ((f"`{name}`", _doc(loss), _paper(loss)) for name, loss in {**LOSSES, **WITH_LABEL}.items())
    return _folded("Every objective", _table(("`objective`", "sum over", "after"), rows))


def _paper(loss: Any) -> str:
    return " ".join(_doc(loss, None).split("\n\n")[1:])


# ── The command line ────────────────────────────────────────────────────────────────────────────────────────


def _commands() -> str:
    rows = []
    for command in commands.app.registered_commands:
        callback = typing.cast(Callable[..., Any], command.callback)
        needed = "".join(f" {name}" for name, _, info, _ in _parameters(callback) if isinstance(info, ArgumentInfo))
        rows.append((f"[`shoal {callback.__name__}{needed}`](#{_section(callback.__name__)})", _doc(callback)))
    return _table(("command", "does"), rows)


def _section(command: str) -> str:
    """The anchor of the section of a command."""
    heading = re.search(rf"^## (shoal {command}\b.*)$", (HERE / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    if heading is None:
        raise ValueError(f"cli.md: shoal {command} has no section")
    return re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")


def _parameters(callback: Callable[..., Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, type, Typer's settings and default of each parameter."""
    hints = get_type_hints(callback, include_extras=True)
    for name, parameter in inspect.signature(callback).parameters.items():
        kind, info = get_args(hints[name])
        printed_name = (info.metavar or name.upper()) if isinstance(info, ArgumentInfo) else name
        yield printed_name, kind, info, parameter.default


def _options(callback: Callable[..., Any]) -> Callable[[], str]:
    def lines() -> Iterator[str]:
        for name, kind, info, default in _parameters(callback):
            meaning = _markdown(info.help)
            if isinstance(info, ArgumentInfo):
                default_note = "" if default in (None, inspect.Parameter.empty) else f" Default: `{default}`."
                yield f"- `{name}`: {meaning}{default_note}"
                continue
            # Until a command runs, Typer takes the first of an option's names for its default.
            declared = [option for option in (info.default, *(info.param_decls or ())) if isinstance(option, str)]
            *short, long = declared or (f"--{name.replace('_', '-')}",)
            names = ", ".join([*(f"`{option}`" for option in short), f"`{long}{_argument(kind)}`"])
            needed = ", needed" if default is inspect.Parameter.empty else ""
            has_default = default is not True and default not in (None, False, inspect.Parameter.empty)
            default_note = f" Default: `{default}`." if has_default else ""
            yield f"- {names}{needed}: {meaning}{default_note}"

    return lambda: _folded("Arguments and options", "\n".join(lines()))


def _argument(kind: Any) -> str:
    (value_type,) = (part for part in _alternatives(kind) if part is not NoneType)
    if get_origin(value_type) is list:
        (value_type,) = get_args(value_type)
    return {bool: "", Path: " <path>", int: " <number>", float: " <number>"}.get(value_type, " <text>")


# ── Python ──────────────────────────────────────────────────────────────────────────────────────────────────


def _functions() -> str:
    return "\n\n".join(_callable(f"shoal.{name}", function, "###") for name, function in _public_functions().items())


def _public_functions() -> dict[str, Callable[..., Any]]:
    public = {name: getattr(shoal, name) for name in shoal.__all__}
    return {name: value for name, value in public.items() if inspect.isfunction(value)}


def _checks() -> str:
    names = [name for name in vars(testing) if name.startswith("check_")]
    return "\n\n".join(_callable(f"shoal.testing.{name}", getattr(testing, name), "###") for name in names)


def _intruder() -> str:
    sections = _folded("Parameters and an example", f"{_sections(shoal.Intruder)}{_example(shoal.Intruder)}")
    return f"{_doc(shoal.Intruder, None)}\n\n{sections}"


def _callable(name: str, function: Any, heading: str) -> str:
    """A heading and the first sentence; the rest of a function is folded."""
    first, _, others_text = _doc(function, None).partition("\n\n")
    parts = [f"```text\n{_signature(name, function)}\n```", others_text, _sections(function) + _example(function)]
    folded = _folded("Signature, parameters and an example", "\n\n".join(filter(None, parts)))
    return f"{heading} {name}\n\n{first}\n\n{folded}"


def _signature(name: str, function: Any, width: float = 88) -> str:
    signature = inspect.signature(function)
    parts, star = [], False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        default = parameter.default
        default_text = getattr(default, "__name__", repr(default))
        kind = "" if parameter.annotation is inspect.Parameter.empty else f": {parameter.annotation}"
        assigned = "" if default is inspect.Parameter.empty else f" = {default_text}"
        stars = "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else ""
        parts.append(f"{stars}{parameter.name}{kind}{assigned}")
    line = f"{name}({', '.join(parts)}) -> {signature.return_annotation}"
    if len(line) <= width:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {signature.return_annotation}"


def _members(cls: type) -> Callable[[], str]:
    def rows() -> Iterator[tuple[str, str]]:
        for name, member in vars(cls).items():
            function = member.__func__ if isinstance(member, classmethod) else member
            if name.startswith("_") or not (inspect.isroutine(function) or _is_property(function)):
                continue
            signature = name if _is_property(function) else _signature(name, function, math.inf)
            yield f"`{signature}`", _doc(function, None).replace("\n\n", " ")

    def text() -> str:
        table = _table(("member", "meaning"), rows())
        return f"{_doc(cls, None)}\n\n{_folded('Example and members', f'{_example(cls).strip()}{chr(10) * 2}{table}')}"

    return text


def _transformer() -> type:
    """The class for scikit-learn, loaded without it: only its own docstrings are printed."""
    if "sklearn" in sys.modules:
        return shoal.Anonymizer
    _public_functions()  # everything else of shoal is loaded, and stays
    names = ("sklearn", "sklearn.base", "sklearn.utils", "sklearn.utils.validation")
    stubs = {name: mock.MagicMock(BaseEstimator=object, TransformerMixin=type("Mixin", (), {})) for name in names}
    with mock.patch.dict(sys.modules, stubs):
        return importlib.import_module("shoal.transformer").Anonymizer


def _is_property(member: Any) -> bool:
    return type(member).__name__ in ("property", "cached_property")


def _inherited(kind: type) -> list[str]:
    """Members that a class inherits from other classes of shoal."""
    ours = [base for base in kind.__mro__[1:] if base.__module__.startswith("shoal.")]
    return [name for base in ours for name in vars(base)]


def _results() -> str:
    def rows() -> Iterator[tuple[str, ...]]:
        for name, function in _public_functions().items():
            answer = inspect.signature(function).return_annotation
            kind = getattr(sys.modules[function.__module__], re.sub(r"list\[(.*)\]", r"\1", answer), None)
            if kind in (None, Any):  # plain values, such as a dict or a pair of paths
                continue
            members = dict.fromkeys([*inspect.get_annotations(kind), *vars(kind), *_inherited(kind)])
            public = ", ".join(f"`{member}`" for member in members if not member.startswith("_"))
            yield f"[`shoal.{name}`](#shoal{name})", f"`{answer}`", _doc(kind), public

    return _folded("What each function returns", _table(("function", "returns", "which is", "and has"), rows()))


def _errors() -> str:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, shoal.ShoalError)]
    rows = (
        (f"`shoal.{kind.__name__}`", f"`{kind.__mro__[1].__name__}`", str(kind.exit_code), _doc(kind)) for kind in kinds
    )
    return _folded("Every error", _table(("error", "is a", "exit code", "raised when"), rows))


PARTS: dict[str, Callable[[], str]] = {
    "coarsening": _fields(Coarsening, "Fields of <code>released</code>"),
    "columns": _fields(Column, "Every field of a column"),
    "release": _fields(Options, "Every field of <code>[release]</code>"),
    **{
        f"hierarchy {key}": _fields(kind, f"Fields of <code>{key}</code>")
        for key, kind in BY_KEY.items()
        if len(kind.model_fields) > 1 and key != "boundaries"
    },
    "requirements of classes": _requirements(_by_class, "every class", "Every requirement of classes"),
    "requirements with a population": _requirements(
        lambda model: issubclass(model, PopulationModel) and not issubclass(model, ReleaseModel),
        "every class",
        "Every requirement with a population",
    ),
    "requirements of the release": _requirements(
        lambda model: issubclass(model, ReleaseModel), "the release", "Every requirement of the release"
    ),
    "models of classes": _models(lambda model: not issubclass(model, ReleaseModel), "every class"),
    "models of the release": _models(lambda model: issubclass(model, ReleaseModel), "the release"),
    "merging": _merging,
    "families of tables": _published,
    "disclosure": _disclosure,
    "measured limits": _requirements(
        lambda model: issubclass(model, MeasuredLimit), "at most `max`", "Every measured limit"
    ),
    "forbidden results": _forbidden,
    "distances": _distances,
    "presets": _presets,
    "algorithms": _algorithms,
    "objectives": _objectives,
    "commands": _commands,
    **{
        f"shoal {command.callback.__name__}": _options(command.callback)
        for command in commands.app.registered_commands
        if command.callback
    },
    "functions": _functions,
    "testing": _checks,
    "Intruder": _intruder,
    "results": _results,
    "Release": _members(shoal.Release),
    "Policy": _members(Policy),
    "Anonymizer": _members(_transformer()),
    "errors": _errors,
}

VERSION = shoal.__version__

if __name__ == "__main__":
    for name, text in texts().items():
        (HERE / name).write_text(text, encoding="utf-8")
    for page in HERE.glob("*.md") if "--steps" in sys.argv else ():
        text = page.read_text(encoding="utf-8")
        printed_in = functools.partial(printed, namespace=namespace_of(page.stem))
        if (computed := STEP.sub(lambda block: step(block[1], printed_in(block[1])), text)) != text:  # noqa: B023
            page.write_text(computed, encoding="utf-8")
