// The connection to the server. While it is away that is said at once, and a press is refused rather than lost; what is
// typed stays. A server that was started anew knows nothing of the page: it draws it before the next press counts.
const connection = (() => {
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
    const typing = event.target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, summary");
    const pressed = event.type === "click" ? event.target.closest?.("button, a[href], label") : event.key.length === 1;
    if (typing || !pressed) return;
    refused = !here;
    if (here) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    say("Not saved: the server does not answer. Wait until it does, and press again.");
  };
  for (const kind of ["click", "keydown"]) addEventListener(kind, refuse, true);
  return { isHere: () => here, refuse: () => (refused = true) };
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
    const cell = event.target.closest?.("[data-cells] > td"), link = document.createElement("a");
    if (!cell || cell.querySelector("a")) return;
    const [to, told, ...lines] = cell.parentElement.dataset.cells.split("\n");
    const line = lines[[...cell.parentElement.querySelectorAll(":scope > td")].indexOf(cell)];
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

// The keys of a form on which people judge. Every press counts, in the order of the presses: a digit chooses in the row that
// waits for a choice, at once; a press that saves is sent, and what is pressed before the next task is drawn waits for it.
// A key held down counts once, and so does a double click, whose second half would fall on a task that nobody has read.
(() => {
  const apart = 500;  // milliseconds, the longest double click of common desktops
  const lost = 5000;  // milliseconds after which a press that changed nothing holds back no other
  const ours = '[class*="st-key-once-"]';
  const writing = "input:not([type=radio], [type=checkbox]), textarea, select";
  const waiting = [];
  let sent = null, sentAt = 0, clicked = -Infinity;
  const bar = () => document.querySelector(ours);
  const status = () => document.querySelector(`${ours} [data-turn]`)?.dataset ?? {};
  const isDrawn = () => document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]");
  const press = (name) => {
    const button = document.querySelector(`${ours} .st-key-${name}-${status().task} button`);
    if (!button || button.disabled) return;
    [sent, sentAt] = [status().turn, performance.now()];
    setTimeout(pump, lost + 100);
    button.click();
  };
  const act = (key) => {
    const at = status().keys.split(" ").indexOf(key);
    const all = rows(status().task), open = all.filter((row) => !row.querySelector("input:checked"));
    if (at >= 0 && all.length) open[0]?.querySelectorAll("input")[at].click();
    else press(at >= 0 ? `choice-${at}` : { s: "skip", u: "undo", Enter: "save" }[key]);
    open[at >= 0 ? 1 : 0]?.parentElement.parentElement.scrollIntoView({ block: "nearest" });
  };
  const pump = () => {
    const { turn, form, refused } = status();
    const isAnswered = sent !== null && turn !== undefined && turn !== sent && isDrawn();
    if (!connection.isHere() || (isDrawn() && !bar()) || (isAnswered && refused)) {
      const unused = waiting.splice(0).length, words = `${unused} later ${unused > 1 ? "presses were" : "press was"} not used.`;
      if (unused && !connection.isHere()) connection.refuse();
      else if (unused && bar()) document.querySelector(`${ours} [data-turn]`).append(words);
      sent = null;
    }
    if (isAnswered || (isDrawn() && performance.now() - sentAt > lost)) sent = null;
    while (sent === null && waiting.length && form) {
      const { key, of } = waiting.shift();
      if (!of || of === form) act(key);
    }
    document.documentElement.classList.toggle("sending", sent !== null);
  };
  addEventListener("keydown", (event) => {
    const { key, target } = event, typing = target.closest?.(writing);
    // A name that is given is left: what is pressed next is a choice and no further letter.
    if (key === "Enter" && target.closest?.(".st-key-annotator")) setTimeout(() => target.blur());
    if (typing || event.altKey || event.isComposing || !bar()) return;
    const command = event.ctrlKey || event.metaKey, isSave = command && key === "Enter";
    const isOurs = isSave || (!command && ["s", "u", ...(status().keys ?? "0 1 2 3 4 5 6 7 8 9").split(" ")].includes(key.toLowerCase()));
    if (!isOurs && !(event.repeat && [" ", "Enter"].includes(key))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.repeat) return;
    waiting.push({ key: isSave ? key : key.toLowerCase(), of: status().form });
    pump();
  }, true);
  addEventListener("click", (event) => {
    if (!event.isTrusted || !event.target.closest(`${ours} button`)) return;
    if (event.timeStamp - clicked >= apart) {
      [clicked, sent, sentAt] = [event.timeStamp, status().turn ?? null, performance.now()];
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  // What is chosen in the rows of a task and not saved yet outlives a reload and a look at another page, in this tab.
  const rows = (task) => [...document.querySelectorAll(`.st-key-rows-${task} [role=radiogroup]`)];
  const restored = new WeakSet();
  const restore = () => {
    const drawn = rows(status().task);
    if (!drawn.length || restored.has(drawn[0]) || !isDrawn()) return;
    restored.add(drawn[0]);
    const { task, places } = JSON.parse(sessionStorage.getItem("chosen") ?? "{}");
    if (status().task !== task) return;
    for (const row of drawn) if (!row.querySelector("input:checked")) row.querySelectorAll("input")[places[row.ariaLabel]]?.click();
  };
  // By the rows' names, as a page that is being drawn may have rows twice or in part.
  const keep = () => {
    const places = {}, drawn = rows(status().task);
    for (const row of drawn) {
      const place = [...row.querySelectorAll("input")].findIndex((input) => input.checked);
      if (place >= 0) places[row.ariaLabel] = place;
    }
    if (drawn.length) sessionStorage.setItem("chosen", JSON.stringify({ task: status().task, places }));
  };
  for (const kind of ["pagehide", "popstate"]) addEventListener(kind, keep);
  const watched = { childList: true, subtree: true, attributeFilter: ["data-test-script-state"] };
  new MutationObserver(() => { pump(); restore(); }).observe(document, watched);

  // Who judges is known to this browser alone: no address says it. The server reads the cookie when a page is opened.
  const remember = ({ target }) => {
    if (!target.closest?.(".st-key-annotator")) return;
    const path = new URL(".", location.href).pathname, age = target.value.trim() ? 31536000 : 0;
    document.cookie = `ragleague-annotator=${encodeURIComponent(target.value.trim())}; path=${path}; max-age=${age}; samesite=strict`;
  };
  addEventListener("focusout", remember);
  addEventListener("keydown", (event) => event.key === "Enter" && remember(event), true);
  const named = new URL(location.href);
  if (named.searchParams.has("annotator")) {
    named.searchParams.delete("annotator");
    history.replaceState(history.state, "", named);
  }
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
