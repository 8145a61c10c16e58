// The connection to the server. While it is away that is said at once, and a press is refused rather than lost; what is
// typed stays. A server that was started anew knows nothing of the page: it draws it before the next press counts.
(() => {
  const silence = 5000;  // milliseconds without an answer to what was sent
  const again = "The server answers again. Your last press was not saved: press again.";
  let here = true, refused = false, opened = 0, leaving = false, waiting = 0;
  const say = (words) => {
    let line = document.querySelector("#connection");
    if (!line) {
      line = Object.assign(document.createElement("div"), { id: "connection", role: "alert" });
      document.body.append(line);
    }
    if (line.textContent !== words) line.textContent = words;
  };
  const isDrawn = () => document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]");
  const heard = () => {
    clearTimeout(waiting);
    if (here) say(refused ? again : "");
    else setTimeout(() => {
      if (!isDrawn()) return;
      here = true;
      say(refused ? again : "");
    }, 100);
  };
  addEventListener("pagehide", () => (leaving = true));
  addEventListener("pageshow", () => (leaving = false));
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("open", () => {
        if (opened++) setTimeout(() => dispatchEvent(new PopStateEvent("popstate")));
      });
      this.addEventListener("message", heard);
      this.addEventListener("close", () => {
        clearTimeout(waiting);
        if (!opened || leaving) return;
        here = false;
        say("The server does not answer. Trying again … What you have typed stays here.");
      });
    }
    send(...given) {
      super.send(...given);
      clearTimeout(waiting);
      waiting = setTimeout(() => say("Still waiting for the server to answer …"), silence);
    }
  };
  const refuse = (event) => {
    const typing = event.target.closest?.("input, textarea, select, summary");
    const pressed = event.type === "click" ? event.target.closest?.("button, a[href], label") : event.key.length === 1;
    if (typing || !pressed) return;
    refused = !here;
    if (here) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    say("Not saved: the server does not answer. Wait until it does, and press again.");
  };
  for (const kind of ["click", "keydown"]) addEventListener(kind, refuse, true);
})();

// Links between pages. Streamlit draws the page that the address names when the browser goes back or forward. So a link is
// followed by changing the address and saying that it changed: all of it counts, and nothing is loaded anew. The choice of
// a tournament or group is a link too. The server names the tournament a moment after an address without it is opened;
// the browser is not to go back to that address. Streamlit itself changes the page of the address for no reason but an
// answer that comes late, after the reader has gone on to another page.
(() => {
  const push = history.pushState;
  history.pushState = function (state, title, url) {
    const from = new URL(location.href), to = new URL(url ?? "", from);
    if (from.pathname !== to.pathname) return;
    const completed = [...from.searchParams].every(([name, value]) => to.searchParams.get(name) === value)
      && !from.searchParams.has("tournament");
    (completed ? history.replaceState : push).apply(this, arguments);
  };
  const isPage = (url) => new URL(".", url).href === new URL(".", location.href).href && /\/[a-z]*$/.test(url.pathname);
  const follow = (url) => {
    push.call(history, {}, "", url);
    dispatchEvent(new PopStateEvent("popstate"));
    document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  };
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.href.baseVal ?? link.href, location.href);
    if (event.defaultPrevented || link.download || !isPage(url) || url.hash) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!typed() || confirm("What you typed is not kept yet. Leave it?")) follow(url);
  }, true);
  addEventListener("pointerover", (event) => {
    const cell = event.target.closest?.("[data-cells] > td:not(.strip)"), link = document.createElement("a");
    if (!cell || cell.querySelector("a")) return;
    const [to, told, ...lines] = cell.parentElement.dataset.cells.split("\n");
    const line = lines[[...cell.parentElement.querySelectorAll(":scope > td:not(.strip)")].indexOf(cell)];
    if (!line) return;
    const [rest] = line.split(" ", 1);
    link.href = to + rest;
    cell.title = told + line.slice(rest.length + 1);
    link.append(...cell.childNodes);
    cell.append(link);
  });
  addEventListener("change", (event) => {
    if (event.target.matches?.("select.choice")) follow(new URL(event.target.value, location.href));
  }, true);
})();

// A sign-in ends on the first page. The browser goes on from there to the page where it began.
(() => {
  const back = sessionStorage.getItem("sign-in-began");
  sessionStorage.removeItem("sign-in-began");
  if (back) history.replaceState({}, "", back);
  addEventListener("click", (event) => {
    if (event.target.closest?.('[class*="st-key-sign-in-"] button')) sessionStorage.setItem("sign-in-began", location.href);
  }, true);
})();

// What is typed into a large field is kept once a button says so, in a draft once the field is left. Until then the browser
// asks before it leaves the page.
const typed = (() => {
  const before = new Map();
  addEventListener("focusin", ({ target }) => {
    if (target.matches?.("textarea") && !before.has(target)) before.set(target, target.value);
  });
  addEventListener("focusout", ({ target }) => {
    if (target.closest?.('[class*="st-key-draft-"]')) before.delete(target);
  });
  const isAny = () => [...before].some(([field, value]) => field.isConnected && field.value !== value);
  addEventListener("beforeunload", (event) => isAny() && event.preventDefault());
  return isAny;
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
    return event.repeat || /^[0-9su]$/i.test(event.key);
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
  window.addEventListener("keydown", ({ key, target }) => {
    // A name that is given is left: what is pressed next is a choice and no further letter.
    if (key === "Enter" && target.closest(".st-key-review-top input")) setTimeout(() => target.blur());
  });
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
