"""A drawing as the one element of an image, whose parts no browser has to check, describe or keep: the quickest."""

from __future__ import annotations

import base64
from html import escape


def picture(marks: str, words: str, *, box: str, style: str, css: str) -> str:
    """HTML of a drawing.

    Args:
        marks: of SVG; texts in it are escaped and printable, as anything else would break all of it.
        words: in place of the picture for those who do not see it; our own.
        box: attributes of the ``svg`` element that say how large it is.
        style: of the drawing.
        css: of the image on the page.
    """
    drawn = f'<svg xmlns="http://www.w3.org/2000/svg" {box}><style>{style}</style>{marks}</svg>'
    source = base64.b64encode(drawn.encode()).decode()
    return f'<img style="{css}" src="data:image/svg+xml;base64,{source}" alt="{escape(words)}">'
