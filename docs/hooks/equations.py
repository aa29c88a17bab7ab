r"""Equations become MathML while the site is built, so that browsers show them without scripts or network.

In pages they are written ``$x$`` or, on lines of their own, ``$$ x $$``; both are shown by GitHub as well.
``pymdownx.arithmatex`` finds them and leaves ``\(x\)`` or ``\[x\]`` in elements of the class ``arithmatex``.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

EQUATION = re.compile(r'<(span|div) class="arithmatex">\\[\(\[](.*?)\\[\)\]]</\1>', flags=re.DOTALL)
# latex2mathml sets what stands below these beside them, also in displayed equations.
BESIDE = re.compile(r"<msub>(<mo>(?:min|max)</mo>.*?)</msub>", flags=re.DOTALL)

# It also makes primes superscripts, which are too small to be seen: the sign is a raised one by itself.
PRIME = re.compile(r"<msup>(<mi>\w</mi>)<mi>&#x02032;</mi></msup>")


def mathml(latex: str, *, display: bool) -> str:
    """An equation as a MathML element. What cannot be converted raises, which stops the build."""
    found = convert(" ".join(latex.split()), display="block" if display else "inline")
    found = PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', found)
    if display:
        found = BESIDE.sub(r"<munder>\1</munder>", found)
    return f'<div class="equation">{found}</div>' if display else found


def on_page_content(content: str, *, page: Any, config: Any, files: Any) -> str:
    return EQUATION.sub(lambda match: mathml(html.unescape(match[2]), display=match[1] == "div"), content)
