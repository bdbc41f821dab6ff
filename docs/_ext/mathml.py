"""A math renderer for Sphinx that writes MathML, with the converter that docutils contains.

Browsers lay MathML out themselves, so the pages need no script from anywhere, and the build
needs no LaTeX. A formula that the converter does not understand is a warning, and the
documentation is built with warnings as errors.
"""

import re
from html import escape, unescape
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
logger = logging.getLogger(__name__)
ElementTree.register_namespace("", NAMESPACE)


def mend(mathml):
    r"""Mend two things that the converter leaves to chance.

    The index of an accented letter, as in ``\hat p_j``, belongs beside the letter: it is
    written under it, as the limits of a sum are (whose base is an operator, not a letter). The
    bars of a norm have the height of a line: they stretch over the formula otherwise.
    """
    # XML knows five named entities; the converter writes spaces with those of HTML.
    mathml = re.sub(r"&(?!lt;|gt;|amp;|quot;|apos;)\w+;", lambda name: unescape(name[0]), mathml)
    root = ElementTree.fromstring(mathml)
    for stack in root.iter(f"{{{NAMESPACE}}}munderover"):
        base, index, accent = stack
        if base.tag == f"{{{NAMESPACE}}}mo":
            continue
        stack.tag = f"{{{NAMESPACE}}}msub"
        accented = ElementTree.Element(f"{{{NAMESPACE}}}mover", accent="true")
        accented.extend((base, accent))
        stack[:] = (accented, index)
    for operator in root.iter(f"{{{NAMESPACE}}}mo"):
        if operator.text == "‖":
            operator.set("stretchy", "false")
    return ElementTree.tostring(root, encoding="unicode")


def convert(node, as_block):
    """Return the MathML of a node, or its source as code where it cannot be converted."""
    source = node.astext()
    # The converter takes two digits for one argument, and nothing would tell.
    if re.search(r"frac\s*[^\s{]", source):
        logger.warning("formula %r has a fraction without braces", source, location=node)
    try:
        return mend(tex2mathml(source, as_block=as_block))
    except Exception as error:
        logger.warning("formula %r cannot be converted: %s", source, error, location=node)
        return f"<code>{escape(source)}</code>"


def visit_inline(translator, node):
    """Write a formula within a line."""
    translator.body.append(convert(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator, node):
    """Write a formula of its own; wide ones scroll sideways instead of widening the page."""
    translator.body.append(f'<div class="math-block">{convert(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
