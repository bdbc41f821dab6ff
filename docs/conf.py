"""Sphinx configuration. Nothing is fetched, neither when building nor when reading."""

import os
import sys
from pathlib import Path

import skldp

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

os.environ["TQDM_DISABLE"] = "1"  # a progress bar is a hundred lines on a page

project = "skldp"
author = "The skldp developers"
copyright = "2026, The skldp developers"
version = release = skldp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["skldp.css"]
default_role = "code"
nitpicky = False

# Formulas become MathML, which browsers draw themselves: no script, no network, no LaTeX.
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "matplotlib_animations": False,
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = "skldp"
html_show_sourcelink = False
html_copy_source = False
toc_object_entries_show_parents = "hide"
# A list of sections beside the page helps in the reference only.
html_sidebars = {"*": [], "gallery/*": []}
html_theme_options = {
    "logo": {"text": "skldp"},
    "show_prev_next": False,
    "navbar_align": "left",
    # As many links, and of the search only its sign, as fit at 960 pixels, below which the theme
    # has a menu.
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
}

# The README's picture is the quickstart's: written here whenever the gallery is built.
_README_PICTURE = Path(__file__).parent / "readme.png"
_GALLERY_PICTURE = Path(__file__).parent / "gallery" / "images" / "sphx_glr_quickstart_001.png"


def _update_readme_picture(app: object, exception: Exception | None) -> None:
    if exception is None and _GALLERY_PICTURE.exists():
        _README_PICTURE.write_bytes(_GALLERY_PICTURE.read_bytes())


def setup(app: object) -> None:
    """Connect to the end of the build; called by Sphinx."""
    app.connect("build-finished", _update_readme_picture)  # type: ignore[attr-defined]
