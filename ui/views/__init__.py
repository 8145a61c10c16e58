"""One module per page; each has ``show``, which draws the page of one tournament."""
