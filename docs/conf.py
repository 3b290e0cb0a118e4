"""The documentation site: ``sphinx-build -W docs site`` writes it to site/, where it can be opened from disk.

Pages are written to be read in the repository as well, as plain Markdown. So links lead where the files lie there, and
are turned here to where the site has them; and below a piece of code stands what it prints, which is computed again.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402  (which lies beside this file)

project = "shoal"
author = "The shoal developers"
copyright = "The shoal developers, Apache-2.0"
release = reference.VERSION

extensions = ["myst_parser"]
myst_heading_anchors = 4  # named as GitHub names them
myst_enable_extensions = ["html_image"]
nitpicky = True
smartquotes = False  # two hyphens are an option, not a dash
exclude_patterns = ["*.py"]

html_theme = "furo"
html_title = "shoal"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5c86",
        "color-brand-content": "#0b5c86",
        "color-brand-visited": "#5b4a8a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc4ea",
        "color-brand-content": "#7cc4ea",
        "color-brand-visited": "#c3b3ee",
    },
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_show_search_summary = False  # the search would fetch pages to quote from, which it may not from disk
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

NAVIGATION = {
    "Start": ["Quick start <self>", "idea", "Tutorial <tutorial>", "glossary", "Coming from other tools <migrate>"],
    "Publish a table": [
        "choosing",
        "policy",
        "web",
        "findings",
        "attacks",
        "Disclosure risk <risk>",
        "linkage",
        "Comparing with the original <consistency>",
        "utility",
        "ranges",
        "Report and certificate <report>",
        "Engines <engines>",
        "cli",
    ],
    "Share or compute a result": [
        "families",
        "output",
        "differential_privacy",
        "secure_computation",
        "homomorphic_encryption",
        "integral_privacy",
        "result_privacy",
    ],
    "Understand and extend": [
        "how_it_works",
        "models",
        "algorithms",
        "The taxonomy <taxonomy>",
        "local",
        "performance",
        "performance_sensitive",
        "benchmarks",
        "Python <api>",
        "contributing",
        "Changes <changes>",
    ],
}

# What the repository has elsewhere: its place there, as pages in docs/ write it, and its page here.
SCHEMAS = [HERE / reference.SCHEMA, HERE.parent / "src/shoal/report/certificate.schema.json"]
ELSEWHERE = {
    "../benchmarks/README.md": "benchmarks.md",
    "../CHANGELOG.md": "changes.md",
    "../CONTRIBUTING.md": "contributing.md",
}
SCHEMA = re.compile(r"\[([^\]]+)\]\((?:\.\./src/[\w/]+|schemas)/(\w+\.schema\.json)\)")


def on_site(app: Sphinx, name: str, source: list[str]) -> None:
    """The text of a page with its links turned and its figures computed."""
    text = source[0]
    for repository_path, site_page in ELSEWHERE.items():
        text = text.replace(f"]({repository_path}", f"]({site_page}")
    text = SCHEMA.sub(r'<a href="schemas/\2">\1</a>', text)
    if name == "index":
        text += "".join(map(_toctree, NAVIGATION, NAVIGATION.values()))
    namespace = reference.namespace_of(name)
    source[0] = reference.STEP.sub(lambda step: computed(name, step[1], step[2], namespace), text)


def _toctree(caption: str, pages: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


def computed(name: str, code: str, shown_output: str, namespace: dict[str, Any] | None = None) -> str:
    """The code and its output; the build fails if the page shows another output."""
    output = reference.printed(code, namespace)
    if output != shown_output:
        raise SphinxError(
            f"{name}.md shows\n{shown_output}where its code prints\n{output}; run python docs/reference.py --steps"
        )
    return reference.step(code, output)


def with_classes(app: Sphinx, doctree: nodes.document) -> None:
    """Marks for the style sheet: sentences in tables, which need some width, and plots, which are drawn on white."""
    for cell in doctree.findall(nodes.entry):
        if len(cell.astext()) > 60:
            cell["classes"].append("told")
    for image in doctree.findall(nodes.image):
        if "pictures/" not in image["uri"]:
            image["classes"].append("plot")


def with_levels(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """The theme calls captions of the navigation headings; a reader that speaks needs to know of which level."""
    tree = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def with_schemas(app: Sphinx, failed: Exception | None) -> None:
    """The schemas of what shoal reads and writes, under names that stay."""
    if failed is None:
        (app.outdir / "schemas").mkdir(exist_ok=True)
        for source in SCHEMAS:
            shutil.copy(source, app.outdir / "schemas")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    if stale := reference.stale():
        raise SphinxError(f"{', '.join(stale)}: not what the code says; run python docs/reference.py")
    app.connect("source-read", on_site)
    app.connect("doctree-read", with_classes)
    app.connect("html-page-context", with_levels, priority=900)  # after the theme
    app.connect("build-finished", with_schemas)
