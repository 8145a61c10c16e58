"""Where two texts differ, marked."""

from __future__ import annotations

from ui.views.game import marked, similarity


def test_differences_are_marked_word_by_word_and_inert() -> None:
    left, right = marked("The cat <b>sat</b> on a mat", "the dog <b>sat</b> on a mat & ran")
    assert left == "The <mark>cat</mark> &lt;b&gt;sat&lt;/b&gt; on a mat"
    assert right == "the <mark>dog</mark> &lt;b&gt;sat&lt;/b&gt; on a mat <mark>&amp; ran</mark>"
    assert similarity("a b c d", "a x c d") == 0.75
    assert similarity("word " * 5000, "word") is None
