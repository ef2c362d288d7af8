"""How Sphinx builds the documentation: `make docs`."""

from photostereo import __version__

project = "photostereo"
author = "The photostereo developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
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
exclude_patterns = ["reproduction.readings.md", "_build", "gallery/**/*.py", "gallery/**/*.md5"]

myst_enable_extensions = ["dollarmath", "tasklist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]

autodoc_default_options = {"members": True, "member-order": "bysource", "exclude-members": "__new__"}
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
