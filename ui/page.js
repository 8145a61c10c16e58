// Where Streamlit leaves the tournament out. The server names it a moment after a page is opened: the browser is not to
// keep an address without it to go back to. And links of the menu lead to the same tournament in another tab too.
(() => {
  const name = "tournament";
  const push = history.pushState;
  history.pushState = function (state, title, url) {
    const from = new URL(location.href), to = new URL(url ?? "", from);
    const named = !from.searchParams.has(name) && to.searchParams.has(name);
    for (const address of [from, to]) address.searchParams.delete(name);
    (named && from.href === to.href ? history.replaceState : push).apply(this, arguments);
  };
  const lead = (event) => {
    const link = event.target.closest?.("a[href]");
    const shown = new URLSearchParams(location.search).get(name);
    if (!link || shown === null || link.origin !== location.origin) return;
    const address = new URL(link.href);
    address.searchParams.set(name, shown);
    link.href = address;
  };
  for (const kind of ["pointerover", "focusin"]) addEventListener(kind, lead, true);
})();

// A press counts once: what tells the second press of a double click, or a key held down, from a new one. Only the
// browser knows. The server may see the second press when the page has been drawn anew, where it falls on the next thing,
// which nobody has read yet; and how much later it sees it says only how busy the server is.
(() => {
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

// A click on a heading of a table sorts its rows: up, down, and as they were. What has no value stays at the end. A table
// that is drawn anew with the same headings, as a filter does it, is sorted as it was.
(() => {
  const next = { ascending: "descending", descending: "none" };
  const tables = ".stHtml > .scroll > table";
  const sorts = new Map();
  const named = (table) => `${location.pathname} ${[...table.tHead.rows[0].cells].map((cell) => cell.textContent).join("\n")}`;
  const compared = (one, other, way) => {
    const unknown = (one.textContent === "-") - (other.textContent === "-");
    const [left, right] = [one, other].map((cell) => cell.dataset.value);
    const apart = left && right ? left - right : one.textContent.localeCompare(other.textContent, undefined, { numeric: true });
    return unknown || way * apart;
  };
  const sort = (table, at, order) => {
    const heads = table.tHead.rows[0].cells, body = table.tBodies[0], rows = [...body.rows];
    rows.forEach((row, place) => (row.dataset.place ??= place));
    for (const head of heads) head.removeAttribute("aria-sort");
    if (order !== "none") heads[at].setAttribute("aria-sort", order);
    const way = order === "descending" ? -1 : 1;
    const between = (one, other) => order === "none" ? 0 : compared(one.cells[at], other.cells[at], way);
    rows.sort((one, other) => between(one, other) || one.dataset.place - other.dataset.place);
    body.append(...rows);
  };
  addEventListener("click", (event) => {
    const head = event.target.closest?.(".scroll thead button")?.parentElement;
    if (!head) return;
    const table = head.closest("table"), order = next[head.getAttribute("aria-sort")] ?? "ascending";
    sorts.set(named(table), [head.cellIndex, order]);
    sort(table, head.cellIndex, order);
  });
  new MutationObserver(() => {
    for (const table of document.querySelectorAll(`${tables}:not([data-seen])`)) {
      table.dataset.seen = "";
      const [at, order] = (table.tHead && sorts.get(named(table))) ?? [];
      if (order) sort(table, at, order);
    }
  }).observe(document, { childList: true, subtree: true });
})();
