// The one script of the console. Pages work without it; with it they stay fresh. It asks for the
// page anew, takes over what has changed, and never what somebody is in the middle of.
"use strict";

const DEAD = 500; // ms in which a card that has just come or moved takes no answer
const HIDDEN_LOOK = 20000;
const body = document.body;
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/* ---- Swapping in what is new ---- */

const born = new WeakMap();
const held = new Map();

function keep(node) {
  // What somebody has opened, typed or chosen is theirs.
  return node instanceof HTMLElement && node.matches("input, textarea, select");
}

function attributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // What has the focus keeps what lets it have it.
    const holds = name === "open" || (name === "tabindex" && old === document.activeElement);
    if (!fresh.hasAttribute(name) && !holds) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (name === "open" || old.getAttribute(name) === value) continue;
    old.setAttribute(name, value);
  }
}

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName === "TIME" && fresh.dataset.time) {
    // What it says is the script's: it is not set back to what the server said.
    for (const { name, value } of [...fresh.attributes]) old.setAttribute(name, value);
    tell(old);
    return;
  }
  attributes(old, fresh);
  if (keep(old)) return;
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const id = next.id;
    while (isTold(at) && at.id !== id) at = at.nextSibling;
    let match = null;
    if (id) {
      // What has become another kind of thing is drawn anew.
      match = [...old.children].find((it) => it.id === id && it.nodeName === next.nodeName) || null;
    } else if (at && at.nodeType === next.nodeType && at.nodeName === next.nodeName && !at.id) {
      match = at;
    }
    if (!match) {
      old.insertBefore(document.importNode(next, true), at);
      continue;
    }
    if (at && match.contains(document.activeElement)) at = passOver(at, match);
    if (match === at) at = at.nextSibling;
    else old.insertBefore(match, at);
    if (match.nodeType === Node.TEXT_NODE) {
      if (match.data !== next.data) match.data = next.data;
    } else if (match.nodeType === Node.ELEMENT_NODE) {
      morph(match, next);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    if (!isTold(gone)) gone.remove();
  }
}

// What the system answered stands on this page alone: a fresh one does not have it.
const isTold = (node) => node instanceof HTMLElement && node.hasAttribute("data-told");

// What is moved loses the focus: what stands before it is moved in its place.
function passOver(at, match) {
  if (!(at.compareDocumentPosition(match) & Node.DOCUMENT_POSITION_FOLLOWING)) return at;
  while (at !== match) {
    const passed = at;
    at = at.nextSibling;
    passed.parentNode.append(passed);
  }
  return at;
}

// A list that somebody is in does not move under their hands: what is new waits behind a button.
function isHeld(list) {
  return list.matches(":hover, :focus-within");
}

function swapIn(old, fresh, force) {
  const list = find("[data-hold]", old);
  const other = find("[data-hold]", fresh);
  if (list && !force && isHeld(list)) {
    const known = new Set([...list.children].map((it) => it.id));
    const news = other ? [...other.children].filter((it) => !known.has(it.id)).length : 0;
    held.set(old.id, fresh);
    const button = find("#fresh");
    if (button && news > 0) {
      button.hidden = false;
      button.textContent = body.dataset.new.replace("{n}", news);
    }
    return;
  }
  held.delete(old.id);
  morph(old, fresh);
}

function letGo() {
  for (const [id, fresh] of [...held]) {
    const old = document.getElementById(id);
    held.delete(id);
    if (old) take([[old, fresh]], true);
  }
  const button = find("#fresh");
  if (button) button.hidden = true;
}

function take(pairs, force) {
  const logs = all("[data-log]").filter((it) => it.scrollHeight - it.scrollTop - it.clientHeight < 80);
  const places = new Map(all("[data-call]").map((it) => [it, it.getBoundingClientRect().top]));
  const rows = new Set(all("[data-announce]").map((it) => it.closest("[id]").id));
  const focus = document.activeElement;
  const around = focus && focus !== body ? ancestors(focus) : [];
  for (const [old, fresh] of pairs) swapIn(old, fresh, force);
  const now = performance.now();
  for (const call of all("[data-call]")) {
    const before = places.get(call);
    const moved = before !== undefined && Math.abs(before - call.getBoundingClientRect().top) > 4;
    if (before === undefined || moved) born.set(call, now);
  }
  if (around.length && !document.contains(focus)) {
    // What had the focus is gone; what was around it has it now.
    const next = around.find((id) => document.getElementById(id));
    const place = next && document.getElementById(next);
    if (place) {
      if (!place.hasAttribute("tabindex")) place.tabIndex = -1;
      place.focus({ preventScroll: true });
    }
  }
  const fresh = all("[data-announce]").filter((it) => !rows.has(it.closest("[id]").id));
  if (fresh.length) say(fresh.map((it) => it.dataset.announce).join(". "));
  for (const log of logs) log.scrollTop = log.scrollHeight;
  if (following) follow(true);
  alike();
  list();
  dress(document);
}

function ancestors(node) {
  const ids = [];
  for (let it = node; it; it = it.parentElement) if (it.id) ids.push(it.id);
  return ids;
}

function say(text) {
  const region = find("#say");
  if (!region || !text) return;
  region.classList.remove("seen");
  region.textContent = text;
}

// The same for eyes as well: one region, so that nobody hears it twice.
function show(text) {
  const region = find("#say");
  if (!region || !text) return;
  say(text);
  region.classList.add("seen");
  clearTimeout(show.timer);
  show.timer = setTimeout(() => region.classList.remove("seen"), 6000);
}

function alarm(text) {
  const region = find("#alert");
  if (!region) return;
  region.textContent = text;
  clearTimeout(alarm.timer);
  alarm.timer = setTimeout(() => (region.textContent = ""), 12000);
}

const parse = (text) => new DOMParser().parseFromString(text, "text/html");

async function read(address) {
  const response = await fetch(address, { headers: { accept: "text/html" } });
  if (response.redirected && new URL(response.url).pathname === "/signin") {
    if (isTyped()) signInAgain();
    else location.reload();
    return null;
  }
  if (!response.ok) return null;
  const fresh = parse(await response.text());
  if (fresh.body.dataset.person === body.dataset.person) return fresh;
  leave();
  return null;
}

// A list of what waits draws its most urgent card. The one that is open stays for as long as it
// waits or somebody is at it: it is read from its own address in place of the other.
async function keepCard(fresh) {
  const open = find("#open .card");
  const other = find("#open", fresh);
  if (!open || !other || fresh.getElementById(open.id)) return;
  if (!find("[data-call]", open) && !isHeld(open)) return;
  const call = all(".call", open).map((it) => it.id.match(/perm_\w+$/)).find(Boolean);
  const page = call && (await read(`/inbox/${call[0]}`));
  if (!page || !page.getElementById(open.id)) {
    // It cannot be read now: then it is left as it is.
    other.remove();
    return;
  }
  other.replaceWith(fresh.importNode(find("#open", page), true));
  const current = find("#rows .row[aria-current]", page);
  for (const row of all("#rows .row", fresh)) {
    row.removeAttribute("aria-current");
    if (current && row.getAttribute("href") === current.getAttribute("href")) row.setAttribute("aria-current", "true");
  }
}

let asking = null;
let again = false;
let answered = 0;
async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = (async () => {
    const before = answered;
    const fresh = await read(location.href);
    if (!fresh) return;
    await keepCard(fresh);
    // An answer has drawn the page since: this one is older.
    if (before !== answered) {
      again = true;
      return;
    }
    const live = all("[data-live][id]").map((old) => [old, fresh.getElementById(old.id)]);
    take(live.filter(([, it]) => it), false);
  })();
  try {
    await asking;
  } catch (error) {
    // It is asked for again when there is news.
  } finally {
    asking = null;
    if (again) {
      again = false;
      refresh();
    }
  }
}

function count(waiting) {
  const badge = find("#badge");
  if (badge) {
    badge.textContent = waiting;
    badge.hidden = waiting === 0;
  }
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = waiting > 0 ? `(${waiting}) ${title}` : title;
  seal(waiting);
}

// The seal in the browser's own frame says how many wait, too.
function seal(waiting) {
  const link = find("link[rel=icon]");
  if (!link) return;
  link.dataset.plain ||= link.getAttribute("href");
  if (waiting === 0) {
    link.href = link.dataset.plain;
    return;
  }
  const shown = waiting > 99 ? "99" : String(waiting);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="16" fill="#ab3412"/><text x="16" y="23" text-anchor="middle" font-family="sans-serif" font-weight="700" font-size="${shown.length > 1 ? 17 : 20}" fill="#fff">${shown}</text></svg>`;
  link.href = `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/* ---- The stream ---- */

const PAUSE_MIN = 1000;
const PAUSE_MAX = 30000; // Longer, and a page is stale for long after the server has come back.
let stream = null;
let polling = null;
let reopening = null;
let pause = PAUSE_MIN;

function pulse(name, words) {
  const dot = find("#pulse");
  if (!dot) return;
  dot.dataset.state = name;
  dot.title = words;
}

function listen() {
  if (stream || !body.dataset.person) return;
  clearTimeout(reopening);
  const watch = encodeURIComponent(body.dataset.watch || "");
  stream = new EventSource(`/ui/events?watch=${watch}`);
  stream.addEventListener("open", () => {
    pause = PAUSE_MIN;
    pulse("on", body.dataset.live);
  });
  stream.addEventListener("error", lost);
  stream.addEventListener("stale", (event) => {
    count(Number(event.data));
    if (find("[data-live][id]")) refresh();
  });
}

// A browser opens a stream again that broke off, but never one that was refused.
function lost() {
  pulse("lost", body.dataset.lost);
  if (!stream || stream.readyState !== EventSource.CLOSED) return;
  stream = null;
  reopening = setTimeout(listen, pause);
  pause = Math.min(pause * 2, PAUSE_MAX);
}

function hangUp() {
  clearTimeout(reopening);
  if (!stream) return;
  stream.close();
  stream = null;
  pulse("off", "");
}

// A browser has few connections to one host: tabs that nobody looks at give theirs back.
function visibility() {
  clearInterval(polling);
  if (document.hidden) {
    polling = setInterval(async () => {
      hangUp();
      try {
        const response = await fetch("/ui/badge");
        if (response.ok) count((await response.json()).waiting);
      } catch (error) {
        // It is asked again.
      }
    }, HIDDEN_LOOK);
  } else {
    tick();
    listen();
  }
}

/* ---- Forms ---- */

const underWay = new WeakSet();

async function send(form, submitter) {
  const hand = document.activeElement;
  const call = form.closest("[data-call]");
  const answers = call && byKeys && call.contains(hand);
  const data = new URLSearchParams(new FormData(form, submitter));
  const buttons = all("button", form).filter((it) => !it.disabled);
  buttons.forEach((it) => (it.disabled = true));
  try {
    const response = await fetch(form.action, {
      method: "POST",
      body: data,
      headers: { accept: "text/html" },
    });
    if (response.status === 401) {
      buttons.forEach((it) => (it.disabled = false));
      keepDrafts(form);
      giveBack(hand);
      signInAgain();
      return;
    }
    const fresh = parse(await response.text());
    const problem = find("[data-problem]", fresh);
    if (!response.ok || problem) {
      buttons.forEach((it) => (it.disabled = false));
      keepDrafts(form);
      giveBack(hand);
      alarm((problem || fresh.body).textContent.trim().replace(/\s+/g, " "));
      refresh();
      return;
    }
    form.reset();
    buttons.forEach((it) => (it.disabled = false));
    if (fresh.documentElement.lang !== document.documentElement.lang) {
      location.assign(response.url);
      return;
    }
    if (response.url && new URL(response.url).pathname !== location.pathname) {
      history.pushState(null, "", response.url);
      here = place();
    }
    answered += 1;
    const badge = find("#badge", fresh);
    if (badge) count(Number(badge.textContent));
    const from = find("#main", fresh);
    const live = all("[data-live][id]").map((old) => [old, fresh.getElementById(old.id)]);
    if (from) take(live.filter(([, it]) => it), true);
    all("details.act[open]").forEach((it) => it.contains(form) && (it.open = false));
    giveBack(hand);
    if (answers) handOn(call, form);
    const word = submitter && submitter.textContent.trim();
    say(word ? `${word} ✓` : document.title);
  } catch (error) {
    buttons.forEach((it) => (it.disabled = false));
    keepDrafts(form);
    giveBack(hand);
    alarm(body.dataset.lost);
  }
}

const isFree = () => !document.activeElement || document.activeElement === body;

// A button that is off for a moment loses the focus.
function giveBack(hand) {
  if (hand && isFree() && document.contains(hand)) hand.focus({ preventScroll: true });
}

// Only who answers by keys is led on: under a pointer nothing moves, and a list is not held.
let byKeys = false;
document.addEventListener("keydown", () => (byKeys = true), true);
document.addEventListener("pointerdown", () => (byKeys = false), true);

// After an answer the focus goes on to what waits next, unless somebody has gone elsewhere.
function handOn(call, form) {
  const at = document.activeElement;
  const away = !isFree() && (!call.contains(at) || (isTyping(at) && at.form !== form));
  const to = !away && nextAfter(call);
  // A field in what has just been closed has the focus only for a moment more.
  if (!to || (to.contains(at) && at.checkVisibility())) return;
  if (!to.matches("a, [tabindex]")) to.tabIndex = -1;
  to.focus();
  // The key that answered is perhaps still on its way.
  if (to !== call) born.set(to, performance.now());
}

function nextAfter(call) {
  if (call.matches("[data-call]") && document.contains(call)) return call;
  const card = call.closest(".card");
  const waiting = card ? all("[data-call]", card) : [];
  const below = waiting.find((it) => call.compareDocumentPosition(it) & Node.DOCUMENT_POSITION_FOLLOWING);
  return below || waiting[0] || find("#rows .row") || (card && find(".card-head", card));
}

// Invariant: a form that is under way is not sent again, however often it is asked for.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  const aside = event.submitter && event.submitter.hasAttribute("formaction");
  const sends = form.matches("[data-send]") && !aside;
  if (sends || underWay.has(form)) event.preventDefault();
  if (underWay.has(form)) return;
  underWay.add(form);
  if (sends) await send(form, event.submitter);
  // The page that it leads to may never come: then it may be sent again.
  else await new Promise((done) => setTimeout(done, 5000));
  underWay.delete(form);
});

/* ---- Keys: only where the focus is, never while somebody types, never on arrival ---- */

const isTyping = (node) => node.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
const isYoung = (call) => performance.now() - (born.get(call) ?? 0) < DEAD;
const letters = () => body.dataset.keys === "on";

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return;
  const target = event.target;
  if (!(target instanceof Element)) return;
  const done = inCommands(event, target) || plainKey(event, target) || inMatrix(event, target) || chord(event, target) ||
    (isLetter(event, target) && (going(event) || inList(event, target) || inTrace(event, target) || onCall(event, target) || anywhere(event)));
  if (done) event.preventDefault();
});

// Enter and Escape are nobody's shortcut: they do what they do everywhere.
function plainKey(event, target) {
  if (event.key === "Enter" && !event.shiftKey && target.matches("textarea[data-enter]")) {
    if (target.value.trim() && !event.repeat) target.form.requestSubmit();
    return true;
  }
  const opened = event.key === "Escape" && target.closest("details.act[open]");
  if (!opened) return false;
  opened.open = false;
  (opened.closest("[data-call]") || find("summary", opened)).focus();
  return true;
}

function chord(event, target) {
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
    jump();
    return true;
  }
  if (!event.altKey || event.ctrlKey || event.metaKey) return false;
  const place = {
    ArrowUp: () => all("[data-call], .card", find("#log") || document).pop(),
    1: () => find("#text"),
    2: () => all(".room-speak textarea").pop(),
  }[event.key];
  const to = place && find("#log") && place();
  if (!to) return false;
  if (to.matches(".card")) to.tabIndex = -1;
  to.focus();
  return true;
}

function isLetter(event, target) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(target)) return false;
  return letters() || event.key.length > 1;
}

const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

function inList(event, target) {
  const list = target.closest("[data-list]");
  if (!list) return false;
  const step = STEPS[event.key];
  const items = all("a.row, [data-item]", list);
  if (step) {
    const next = items[items.indexOf(target) + step];
    if (next) next.focus();
    return Boolean(next);
  }
  const pick = event.key === "x" && find(".pick input", target.closest("li") || list);
  if (!pick) return false;
  pick.click();
  say(`${pick.closest("label").textContent.trim()} ${pick.checked ? "✓" : "–"}`);
  return true;
}

function inTrace(event, target) {
  const trace = target.closest("[data-trace]");
  if (!trace) return false;
  const line = target.closest("tr");
  const lines = all("tbody tr", trace);
  const details = line && find("details", line);
  if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    if (!details) return false;
    details.open = event.key === "ArrowRight";
    return true;
  }
  if (event.key === "[" || event.key === "]") {
    const step = event.key === "]" ? 1 : -1;
    for (let at = lines.indexOf(line) + step; lines[at]; at += step) {
      const item = lines[at].matches("[data-trouble]") && find("[data-item]", lines[at]);
      if (!item) continue;
      item.focus();
      return true;
    }
    return true;
  }
  if (event.key !== "f") return false;
  follow(!following);
  return true;
}

// Following: the newest line stays in sight.
let following = false;
function follow(on) {
  const trace = find("[data-trace]");
  if (!trace) return;
  following = on;
  const mark = find("#follow");
  if (mark) mark.setAttribute("aria-pressed", String(on));
  if (on) trace.scrollIntoView({ block: "end" });
}

function onCall(event, target) {
  const call = target.closest("[data-call]");
  if (!call) return false;
  const step = STEPS[event.key];
  if (step && event.key.length === 1) {
    const calls = all("[data-call]");
    const next = calls[calls.indexOf(call) + step];
    if (next) next.focus();
    return true;
  }
  if (event.key === "w") {
    const why = find("[data-why]", call);
    if (why) why.focus();
    return true;
  }
  const act = /^[a-zA-Z+]$/.test(event.key) && find(`[data-key="${event.key}"]`, call);
  if (!act) {
    const high = event.key === "a" && find("[data-key=A]", call);
    if (high) show(body.dataset.high);
    return Boolean(high);
  }
  if (isYoung(call)) return true;
  if (act instanceof HTMLDetailsElement) {
    act.open = true;
    const field = find("textarea, input:not([type=hidden]), button", act);
    if (field) field.focus();
  } else {
    act.click();
  }
  return true;
}

let went = 0;
function anywhere(event) {
  if (find("dialog[open]")) return false;
  if (event.key === "?") {
    overlay("/help", "#keys");
    return true;
  }
  if (event.key === "g") {
    went = performance.now();
    return true;
  }
  return false;
}

// After `g` the next key says where to, and nothing else: not even if it leads nowhere.
function going(event) {
  if (event.key.length > 1 || event.key === "g") return false;
  const pending = went > 0 && performance.now() - went < 1500;
  went = 0;
  if (!pending || event.key === " " || find("dialog[open]")) return false;
  const room = /^[a-z]$/.test(event.key) && find(`[data-go="${event.key}"]`);
  if (room) location.assign(room.href);
  return true;
}

/* ---- A matrix is one stop for Tab: arrows lead from cell to cell ---- */

const CELL = "table.matrix td a";
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const stops = new WeakMap();
const shownRows = (table) => all("tbody tr", table).filter((it) => !it.hidden);

function inMatrix(event, target) {
  if (!target.matches(CELL) || event.shiftKey || event.altKey || event.metaKey) return false;
  const step = !event.ctrlKey && ARROWS[event.key];
  const ends = event.key === "Home" || event.key === "End";
  if (!step && !ends) return false;
  const table = target.closest("table");
  const row = target.closest("tr");
  const among = event.ctrlKey ? shownRows(table).flatMap((it) => all("td a", it)) : all("td a", row);
  const to = step ? beside(table, target, step) : among.at(event.key === "Home" ? 0 : -1);
  clear(table);
  if (to) to.focus();
  return true;
}

// The next cell in that direction; one with nothing to say is passed over.
function beside(table, target, [right, down]) {
  const rows = shownRows(table);
  let [x, y] = [target.closest("td").cellIndex, rows.indexOf(target.closest("tr"))];
  for (;;) {
    [x, y] = [x + right, y + down];
    const cell = rows[y] && rows[y].cells[x];
    const to = cell && find("a", cell);
    if (to || !cell) return to;
  }
}

// What has the focus is not scrolled beneath the heads.
function clear(table) {
  const corner = table.tHead.rows[0].cells[0].getBoundingClientRect();
  const padding = `${Math.ceil(corner.height) + 2}px 2px 2px ${Math.ceil(corner.width) + 2}px`;
  table.closest(".scroll").style.scrollPadding = padding;
}

function matrices() {
  all("input[data-rows]").forEach(narrow);
  for (const table of all("table.matrix")) {
    const cells = shownRows(table).flatMap((it) => all("td a", it));
    const stop = [document.activeElement, stops.get(table)].find((it) => cells.includes(it)) || cells[0];
    stops.set(table, stop);
    for (const it of all("td a", table)) it.tabIndex = it === stop ? 0 : -1;
    // What cannot be gone through can still be scrolled.
    const box = table.closest(".scroll");
    if (!stop) box.tabIndex = 0;
    else if (box !== document.activeElement) box.removeAttribute("tabindex");
    clear(table);
  }
}

// Leaves the rows whose name has what was typed, and says how many of how many.
function narrow(field) {
  const wanted = field.value.trim().toLowerCase();
  const rows = all("table.matrix tbody tr", document.getElementById(field.dataset.rows));
  for (const row of rows) row.hidden = !find("th code", row).textContent.toLowerCase().includes(wanted);
  const left = rows.filter((it) => !it.hidden).length;
  return field.dataset.shown.replace("{n}", left).replace("{all}", rows.length);
}

document.addEventListener("input", (event) => {
  if (!event.target.matches("input[data-rows]")) return;
  matrices();
  say(narrow(event.target));
});
document.addEventListener("focusin", (event) => {
  if (!event.target.matches(CELL)) return;
  const table = event.target.closest("table");
  const before = stops.get(table);
  if (before) before.tabIndex = -1;
  event.target.tabIndex = 0;
  stops.set(table, event.target);
});
window.addEventListener("resize", () => all("table.matrix").forEach(clear));

/* ---- The commands of a talk, listed while one is typed: the focus stays in the field ---- */

let picked = null; // the id of what the arrow keys have come to
let dismissed = null; // what was typed when the list was sent away

function offered(field) {
  const typed = field.value;
  const is = /^\/(?!\/)/.test(typed) && !typed.includes("\n") && typed !== dismissed;
  if (!is || document.activeElement !== field) return [];
  return all("#commands [role=option]").filter(({ dataset: { text } }) => text.startsWith(typed) || typed.startsWith(text));
}

function list() {
  const [field, box] = [find("textarea[data-commands]"), find("#commands")];
  if (!field || !box) return;
  const offers = offered(field);
  if (!offers.some((it) => it.id === picked)) picked = null;
  for (const it of all("[role=option]", box)) {
    it.hidden = !offers.includes(it);
    it.setAttribute("aria-selected", String(it.id === picked));
  }
  if (box.hidden && offers.length) say(box.dataset.hint);
  box.hidden = offers.length === 0;
  if (offers.length) field.setAttribute("aria-controls", box.id);
  else field.removeAttribute("aria-controls");
  if (picked) field.setAttribute("aria-activedescendant", picked);
  else field.removeAttribute("aria-activedescendant");
}

function pick(option) {
  const field = find("textarea[data-commands]");
  field.value = option.dataset.text;
  picked = null;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

function inCommands(event, target) {
  if (!target.matches("textarea[data-commands]") || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return false;
  const offers = offered(target);
  if (!offers.length) return false;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = offers.findIndex((it) => it.id === picked);
  if (step) {
    const to = at < 0 ? (step > 0 ? 0 : offers.length - 1) : (at + step + offers.length) % offers.length;
    picked = offers[to].id;
    list();
    offers[to].scrollIntoView({ block: "nearest" });
    return true;
  }
  if (event.key === "Escape") {
    dismissed = target.value;
    list();
    return true;
  }
  if (at < 0 || (event.key !== "Enter" && event.key !== "Tab")) return false;
  pick(offers[at]);
  return true;
}

document.addEventListener("input", (event) => {
  if (event.isComposing || !event.target.matches("textarea[data-commands]")) return;
  dismissed = null;
  list();
});
document.addEventListener("compositionend", list);
document.addEventListener("focusin", list);
document.addEventListener("focusout", () => setTimeout(list, 0));
// A press on the list leaves the focus where it is.
document.addEventListener("mousedown", (event) => {
  if (event.target instanceof Element && event.target.closest("#commands")) event.preventDefault();
});
document.addEventListener("click", (event) => {
  const option = event.target instanceof Element && event.target.closest("#commands [role=option]");
  if (option) pick(option);
});

/* ---- What lies over a page for a moment: it is asked for, never sent ---- */

async function overlay(address, part) {
  const box = dialog();
  try {
    const response = await fetch(address, { headers: { accept: "text/html" } });
    const found = response.ok && find(part, parse(await response.text()));
    if (found) box.append(document.importNode(found, true));
  } catch (error) {
    alarm(body.dataset.lost);
  }
  lay(box);
}

function dialog() {
  const box = document.createElement("dialog");
  box.className = "over";
  const close = document.createElement("button");
  close.textContent = body.dataset.close;
  close.className = "plain close";
  close.addEventListener("click", () => box.close());
  box.append(close);
  const before = document.activeElement;
  box.addEventListener("close", () => {
    box.remove();
    if (before && document.contains(before)) before.focus({ preventScroll: true });
  });
  return box;
}

function lay(box) {
  body.append(box);
  box.showModal();
}

function jump() {
  if (find("dialog[open]") || !body.dataset.person) return;
  const box = dialog();
  box.setAttribute("aria-label", body.dataset.jump);
  const form = document.createElement("form");
  form.action = "/jump";
  const label = document.createElement("label");
  label.textContent = body.dataset.jump;
  const field = document.createElement("input");
  Object.assign(field, { name: "q", type: "search", autocomplete: "off", maxLength: 200 });
  label.append(field);
  form.append(label);
  const found = document.createElement("div");
  box.append(form, found);
  let asked = 0;
  const look = async () => {
    const mine = ++asked;
    try {
      const response = await fetch(`/jump?q=${encodeURIComponent(field.value)}`, { headers: { accept: "text/html" } });
      const fresh = response.ok && find("#found", parse(await response.text()));
      if (fresh && mine === asked) found.replaceChildren(document.importNode(fresh, true));
    } catch (error) {
      // The next letter asks again.
    }
  };
  let pause = null;
  field.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(look, 90);
  });
  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.key !== "ArrowDown") return;
    const first = find("a.row", found);
    if (first) first.focus();
    event.preventDefault();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(pause);
    await look();
    const first = find("a.row", found);
    if (first) location.assign(first.href);
  });
  lay(box);
  field.focus();
  look();
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (!target) return;
  if (target.closest("[data-jump-open]") && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    jump();
  }
  if (target.closest("#follow")) follow(!following);
  const copy = target.closest("[data-copy]");
  if (copy) {
    // A page that came without TLS may not copy: it shows.
    const link = new URL(copy.dataset.copy, location.href).href;
    const copied = navigator.clipboard ? navigator.clipboard.writeText(link) : Promise.reject();
    copied.then(() => say(`${copy.textContent.trim()} ✓`), () => alarm(link));
  }
});

// Only what is alike is answered together: picking one leaves out the others.
function alike() {
  const picks = all("input[data-like]");
  const first = picks.find((it) => it.checked);
  for (const it of picks) it.disabled = Boolean(first) && it.dataset.like !== first.dataset.like;
}
document.addEventListener("change", alike);

// A button that came under the pointer a moment ago was not meant.
document.addEventListener("click", (event) => {
  const call = event.isTrusted && event.target instanceof Element && event.target.closest("[data-call]");
  if (call && isYoung(call) && event.target.closest("button, summary")) {
    event.preventDefault();
    event.stopPropagation();
  }
}, true);

/* ---- When a visit has ended: one signs in on the spot, and what was typed stays ---- */

let door = null;

function isTyped() {
  const fields = all("textarea, input:not([type=hidden], [type=checkbox], [type=radio])");
  return fields.some((it) => it.value !== it.defaultValue && !it.closest("dialog"));
}

// Nothing that was typed here is shown to anybody else: the page goes, with all that is in it.
const leave = () => location.replace(place());

async function signInAgain() {
  if (door) return;
  const box = dialog();
  door = box;
  box.addEventListener("close", () => (door = null));
  box.setAttribute("aria-label", body.dataset.ended);
  const title = Object.assign(document.createElement("h2"), { textContent: body.dataset.ended });
  const lead = Object.assign(document.createElement("p"), { textContent: body.dataset.stays });
  try {
    const response = await fetch("/signin", { headers: { accept: "text/html" } });
    const found = document.importNode(find("#door", parse(await response.text())), true);
    all("a", found).forEach((it) => (it.target = "_blank"));
    box.append(title, lead, found);
    find("form", found).addEventListener("submit", enter);
    lay(box);
    find("[name=token]", found).focus();
  } catch (error) {
    door = null;
    alarm(body.dataset.ended);
  }
}

async function enter(event) {
  event.preventDefault();
  event.stopPropagation();
  const form = event.target;
  const data = new URLSearchParams(new FormData(form));
  data.set("next", "/help");
  try {
    const response = await fetch(form.action, { method: "POST", body: data, headers: { accept: "text/html" } });
    const fresh = parse(await response.text());
    if (response.ok) {
      entered(fresh);
      return;
    }
    const wrong = find("#wrong", form) || document.createElement("p");
    Object.assign(wrong, { id: "wrong", className: "wrong", role: "alert" });
    wrong.textContent = (find("#wrong, [data-problem]", fresh) || fresh.body).textContent.trim();
    find("button", form).before(wrong);
    find("[name=token]", form).select();
  } catch (error) {
    alarm(body.dataset.lost);
  }
}

// The same person goes on where they were, with forms of the new visit. Nothing is sent by itself.
function entered(fresh) {
  if (fresh.body.dataset.person !== body.dataset.person) {
    leave();
    return;
  }
  const { value } = find("input[name=csrf]", fresh);
  all("input[name=csrf]").forEach((it) => (it.value = value));
  if (door) door.close();
  listen();
  show(body.dataset.again);
}

// Who has signed in in another tab comes back to this one.
window.addEventListener("focus", async () => {
  if (!door) return;
  try {
    const response = await fetch("/help", { headers: { accept: "text/html" } });
    const fresh = parse(await response.text());
    if (door && fresh.body.dataset.person) entered(fresh);
  } catch (error) {
    // There is the form.
  }
});

/* ---- What an answer would have matched, said before it is remembered ---- */

const matching = new WeakMap();

async function preview(form) {
  const button = find("button[data-matches]", form);
  if (!button) return;
  let line = find("p[data-told]", form);
  if (!line) {
    const id = new URL(button.formAction).pathname.replace(/\W/g, "-");
    line = Object.assign(document.createElement("p"), { id, ariaLive: "polite" });
    line.dataset.told = "";
    button.closest("p").before(line);
  }
  const mine = (matching.get(form) || 0) + 1;
  matching.set(form, mine);
  let found = null;
  try {
    const data = new URLSearchParams(new FormData(form));
    const response = await fetch(button.formAction, { method: "POST", body: data, headers: { accept: "text/html" } });
    found = response.ok && find("[data-matched]", parse(await response.text()));
  } catch (error) {
    // The button asks for it, too.
  }
  // Something else was chosen since.
  if (mine !== matching.get(form)) return;
  line.className = found ? found.className : "";
  line.textContent = found ? found.textContent : "";
}

document.addEventListener("toggle", (event) => {
  const form = event.target.open && find("form:has(button[data-matches])", event.target);
  if (form) preview(form);
}, true);
document.addEventListener("change", (event) => event.target.form && preview(event.target.form));

/* ---- Times: in the reader's zone, and going on by themselves ---- */

const TICK = 10000; // ms; what is said changes once a minute, but for the first one
const [AGO, WAITED, LEFT, DAY, HOUR, MINUTE, SECOND, MOMENT] = (body.dataset.times || "").split("|");
const MOVING = { ago: AGO, waited: WAITED, left: LEFT, taken: "{t}" };
// How far the server's clock is ahead of the reader's: it is the server's that things happen by.
const ahead = body.dataset.now ? new Date(body.dataset.now) - Date.now() : 0;
// The page's language, as it is written where the reader lives.
const tongue = (tag) => tag.split("-")[0];
const language = document.documentElement.lang;
const locale = navigator.languages.find((it) => tongue(it) === tongue(language)) || language;
const dates = (options) => new Intl.DateTimeFormat(locale, options);
const DATES = {
  at: dates({ dateStyle: "medium", timeStyle: "short" }),
  exact: dates({ dateStyle: "medium", timeStyle: "medium" }),
  hour: dates({ timeStyle: "short" }),
};
const FULL = dates({ dateStyle: "full", timeStyle: "long" });

// As the server says it: what it drew and what is said here differ by the time alone.
function span(seconds) {
  const of = (length, within) => Math.floor(seconds / length) % within;
  const said = (...parts) => parts.filter(([n]) => n > 0).map(([n, unit]) => `${n} ${unit}`).join(" ");
  const [d, h, m] = [of(86400, Infinity), of(3600, 24), of(60, 60)];
  if (d) return said([d, DAY], [h, HOUR]);
  return said([h, HOUR], [m, MINUTE]) || said([seconds, SECOND]) || MOMENT;
}

function tell(time) {
  const at = new Date(time.dateTime);
  const kind = time.dataset.time;
  if (Number.isNaN(at.valueOf()) || !(kind in MOVING || kind in DATES)) return;
  const since = (Date.now() + ahead - at) / 1000 + Number(time.dataset.before || 0);
  const seconds = Math.max(0, Math.floor(kind === "left" ? -since : since));
  const text = kind in MOVING ? MOVING[kind].replace("{t}", span(seconds)) : DATES[kind].format(at);
  const full = FULL.format(at);
  if (time.textContent !== text) time.textContent = text;
  if (time.title !== full) time.title = full;
}

const tick = () => document.hidden || all("time[aria-live]").forEach(tell);
setInterval(tick, TICK);

/* ---- Drafts, beginnings ---- */

function dress(root) {
  all("time[data-time]", root).forEach(tell);
  matrices();
  for (const field of all("textarea[data-draft]", root)) {
    if (field.dataset.dressed) continue;
    field.dataset.dressed = "yes";
    const key = `draft:${body.dataset.person}:${field.dataset.draft}`;
    const kept = sessionStorage.getItem(key);
    if (kept && !field.value) field.value = kept;
    field.addEventListener("input", () => sessionStorage.setItem(key, field.value));
    field.form.addEventListener("reset", () => sessionStorage.removeItem(key));
    field.form.addEventListener("submit", () => sessionStorage.removeItem(key));
  }
}

// A form that was not taken is not sent: its drafts are drafts still.
function keepDrafts(form) {
  for (const field of all("textarea[data-draft]", form)) field.dispatchEvent(new Event("input", { bubbles: true }));
}

// What is put in force is what was checked: once the text is another, it is checked again first.
function compareDraft() {
  const apply = find("button[name=act][value=apply]");
  const field = find("form.draft textarea");
  if (!apply || !field) return;
  const lines = (text) => text.replace(/\r\n?/g, "\n");
  // What the page came with is what was checked.
  const stale = lines(field.defaultValue) !== lines(field.value);
  if (apply.disabled === stale) return;
  const check = find("button[name=act][value=check]", field.form);
  const words = apply.form.dataset.stale || check.textContent.trim();
  apply.disabled = stale;
  apply.title = stale ? words : "";
  const line = find("#stale");
  if (line) line.remove();
  if (!stale) return;
  apply.after(Object.assign(document.createElement("span"), { id: "stale", className: "soon", textContent: words }));
  say(words);
}

// Where list and card lie below each other, who has chosen a card is led to it.
function leadToCard() {
  const narrow = matchMedia("(max-width: 60rem)").matches;
  const [came] = performance.getEntriesByType("navigation");
  const chosen = location.pathname.startsWith("/inbox/") && !location.hash && came && came.type === "navigate";
  const card = narrow && chosen && find("#open .card");
  if (card) card.scrollIntoView({ block: "start" });
}

// Another place within the page is not another page.
const place = () => location.pathname + location.search;
let here = place();
window.addEventListener("popstate", () => place() !== here && location.reload());

const badge = find("#badge");
if (badge && !badge.hidden) seal(Number(badge.textContent));
const button = find("#fresh");
if (button) button.addEventListener("click", letGo);
// Whoever has the focus or the pointer elsewhere has let go of every list, also of one that came
// since.
const looseIn = (pause) => held.size && setTimeout(() => all("[data-hold]").some(isHeld) || letGo(), pause);
document.addEventListener("focusout", () => looseIn(0));
document.addEventListener("pointerover", () => looseIn(200));
document.documentElement.addEventListener("pointerleave", () => looseIn(200));
document.addEventListener("visibilitychange", visibility);
for (const call of all("[data-call]")) born.set(call, performance.now());
for (const log of all("[data-log]")) log.scrollTop = log.scrollHeight;
dress(document);
document.addEventListener("input", compareDraft);
// A browser that goes back brings what was typed, too.
window.addEventListener("pageshow", compareDraft);
window.addEventListener("pageshow", matrices);
leadToCard();
visibility();
