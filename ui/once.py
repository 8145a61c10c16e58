"""A press counts once: what tells the second press of a double click, or a key held down, from a new one.

Only the browser knows. The server may see the second press when the page has been drawn anew, where it falls on the
next thing, which nobody has read yet; and how much later it sees it says only how busy the server is.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

SCRIPT: Final = """
(() => {
  if (window.ragarenaOnce) return;
  window.ragarenaOnce = true;
  const apart = 500;  // milliseconds, the longest double click of common desktops
  const ours = '[class*="st-key-once-"]';
  let last = -Infinity;
  const isPress = (event) => {
    if (event.type === "click") return event.target.closest(`${ours} button`);
    if (event.target.closest("input, textarea") || !document.querySelector(ours)) return false;
    return event.repeat || /^[0-9s]$/i.test(event.key);
  };
  const guard = (event) => {
    if (!isPress(event)) return;
    if (!event.repeat && event.timeStamp - last >= apart) {
      last = event.timeStamp;
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  window.addEventListener("click", guard, true);
  window.addEventListener("keydown", guard, true);
})();
"""


def use_press_once() -> None:
    """Guard the buttons in containers whose key begins with ``once-``, and the keys that press them."""
    st.html(f"<script data-own>{SCRIPT}</script>", unsafe_allow_javascript=True)
