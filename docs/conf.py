"""How Sphinx builds the documentation: `make docs`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from photostereo import __version__

project = "photostereo"
author = "The photostereo developers"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
html_theme = "furo"
html_title = "photostereo"
html_static_path = ["_static"]
html_css_files = ["print.css"]
exclude_patterns = ["_build", "gallery/*.py", "gallery/*.md5", "gallery/*.ipynb"]

myst_enable_extensions = ["dollarmath", "tasklist"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
suppress_warnings = ["config.cache"]

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": "__new__",
}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autosummary_generate = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
}


def _write_command_reference() -> None:
    """_build/commands.txt, which commands.md includes: the help of every command."""
    command = [
        sys.executable,
        "-m",
        "typer",
        "photostereo.cli.root",
        "utils",
        "docs",
        "--name",
        "photostereo",
    ]
    text = subprocess.run(
        command, check=True, capture_output=True, text=True, encoding="utf-8"
    ).stdout
    chapters = text[text.index("\n## ") :]  # the overview repeats the chapters' first lines
    target = Path(__file__).with_name("_build") / "commands.txt"
    target.parent.mkdir(exist_ok=True)
    target.write_text(
        re.sub(r"^```console$", "```text", chapters, flags=re.MULTILINE), encoding="utf-8"
    )


_write_command_reference()
shutil.copy(Path(__file__).parents[1] / "examples" / "notebook.ipynb", Path(__file__).parent)
