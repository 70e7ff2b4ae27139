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
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (name === "open" || old.getAttribute(name) === value) continue;
    old.setAttribute(name, value);
  }
}

function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  attributes(old, fresh);
  if (keep(old)) return;
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const id = next.id;
    let match = null;
    if (id) {
      match = [...old.children].find((it) => it.id === id) || null;
    } else if (at && at.nodeType === next.nodeType && at.nodeName === next.nodeName && !at.id) {
      match = at;
    }
    if (!match) {
      old.insertBefore(document.importNode(next, true), at);
      continue;
    }
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
    gone.remove();
  }
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
  dress(document);
}

function ancestors(node) {
  const ids = [];
  for (let it = node; it; it = it.parentElement) if (it.id) ids.push(it.id);
  return ids;
}

function say(text) {
  const region = find("#say");
  if (region && text) region.textContent = text;
}

function alarm(text) {
  const region = find("#alert");
  if (!region) return;
  region.textContent = text;
  clearTimeout(alarm.timer);
  alarm.timer = setTimeout(() => (region.textContent = ""), 12000);
}

const parse = (text) => new DOMParser().parseFromString(text, "text/html");

let asking = null;
let again = false;
async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = (async () => {
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (response.redirected && new URL(response.url).pathname === "/signin") {
      location.reload();
      return;
    }
    if (!response.ok) return;
    const fresh = parse(await response.text());
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
}

/* ---- The stream ---- */

let stream = null;
let polling = null;

function listen() {
  if (stream || !body.dataset.person) return;
  const watch = encodeURIComponent(body.dataset.watch || "");
  stream = new EventSource(`/ui/events?watch=${watch}`);
  const pulse = find("#pulse");
  const state = (name, words) => {
    if (pulse) {
      pulse.dataset.state = name;
      pulse.title = words;
    }
  };
  stream.addEventListener("open", () => state("on", body.dataset.live));
  stream.addEventListener("error", () => state("lost", body.dataset.lost));
  stream.addEventListener("stale", (event) => {
    count(Number(event.data));
    if (find("[data-live][id]")) refresh();
  });
}

// A browser has few connections to one host: tabs that nobody looks at give theirs back.
function visibility() {
  clearInterval(polling);
  if (document.hidden) {
    polling = setInterval(async () => {
      if (stream) {
        stream.close();
        stream = null;
      }
      try {
        const response = await fetch("/ui/badge");
        if (response.ok) count((await response.json()).waiting);
      } catch (error) {
        // It is asked again.
      }
    }, HIDDEN_LOOK);
  } else {
    listen();
  }
}

/* ---- Forms ---- */

async function send(form, submitter) {
  const data = new URLSearchParams(new FormData(form, submitter));
  const buttons = all("button", form).filter((it) => !it.disabled);
  buttons.forEach((it) => (it.disabled = true));
  try {
    const response = await fetch(form.action, {
      method: "POST",
      body: data,
      headers: { accept: "text/html" },
    });
    const fresh = parse(await response.text());
    const problem = find("[data-problem]", fresh);
    if (!response.ok || problem) {
      buttons.forEach((it) => (it.disabled = false));
      alarm((problem || fresh.body).textContent.trim().replace(/\s+/g, " "));
      refresh();
      return;
    }
    form.reset();
    buttons.forEach((it) => (it.disabled = false));
    if (response.url && new URL(response.url).pathname !== location.pathname) {
      history.pushState(null, "", response.url);
    }
    const badge = find("#badge", fresh);
    if (badge) count(Number(badge.textContent));
    const from = find("#main", fresh);
    const live = all("[data-live][id]").map((old) => [old, fresh.getElementById(old.id)]);
    if (from) take(live.filter(([, it]) => it), true);
    all("details.act[open]").forEach((it) => it.contains(form) && (it.open = false));
    const word = submitter && submitter.textContent.trim();
    say(word ? `${word} ✓` : document.title);
  } catch (error) {
    buttons.forEach((it) => (it.disabled = false));
    alarm(body.dataset.lost);
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-send]")) return;
  event.preventDefault();
  send(form, event.submitter);
});

/* ---- Keys: only where the focus is, never on arrival ---- */

const isTyping = (node) => node.closest("input, textarea, select, [contenteditable]");
const isYoung = (call) => performance.now() - (born.get(call) ?? 0) < DEAD;

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return;
  const target = event.target;
  if (!(target instanceof Element)) return;
  if (event.key === "Enter" && !event.shiftKey && target.matches("textarea[data-enter]")) {
    event.preventDefault();
    if (target.value.trim()) target.form.requestSubmit();
    return;
  }
  if (event.key === "Escape") {
    const opened = target.closest("details.act[open]");
    if (opened) {
      opened.open = false;
      (opened.closest("[data-call]") || find("summary", opened)).focus();
    }
    return;
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (isTyping(target)) return;
  const list = target.closest("[data-list]");
  const call = target.closest("[data-call]");
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (list && step) {
    const items = all("a.row, [data-item]", list);
    const next = items[items.indexOf(target) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
    return;
  }
  if (!call) return;
  if (step && event.key.length === 1) {
    const calls = all("[data-call]");
    const next = calls[calls.indexOf(call) + step];
    if (next) next.focus();
    return;
  }
  if (event.key === "w") {
    const why = find("[data-why]", call);
    if (why) why.focus();
    return;
  }
  const act = /^[a-z]$/.test(event.key) && find(`[data-key="${event.key}"]`, call);
  if (!act) return;
  event.preventDefault();
  if (isYoung(call)) return;
  if (act instanceof HTMLDetailsElement) {
    act.open = true;
    const field = find("textarea, input:not([type=hidden]), button", act);
    if (field) field.focus();
  } else {
    act.click();
  }
});

// A button that came under the pointer a moment ago was not meant.
document.addEventListener("click", (event) => {
  const call = event.isTrusted && event.target instanceof Element && event.target.closest("[data-call]");
  if (call && isYoung(call) && event.target.closest("button, summary")) {
    event.preventDefault();
    event.stopPropagation();
  }
}, true);

/* ---- Drafts, times, beginnings ---- */

function dress(root) {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, {
    dateStyle: "medium",
    timeStyle: "medium",
  });
  for (const time of all("time[datetime]", root)) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.valueOf()) && time.title === "") time.title = format.format(at);
  }
  for (const field of all("textarea[data-draft]", root)) {
    if (field.dataset.dressed) continue;
    field.dataset.dressed = "yes";
    const key = `draft:${field.dataset.draft}`;
    const kept = sessionStorage.getItem(key);
    if (kept && !field.value) field.value = kept;
    field.addEventListener("input", () => sessionStorage.setItem(key, field.value));
    field.form.addEventListener("reset", () => sessionStorage.removeItem(key));
    field.form.addEventListener("submit", () => sessionStorage.removeItem(key));
  }
}

const button = find("#fresh");
if (button) button.addEventListener("click", letGo);
document.addEventListener("focusout", () => setTimeout(() => {
  for (const list of all("[data-hold]")) if (isHeld(list)) return;
  letGo();
}, 0));
for (const list of all("[data-hold]")) {
  list.addEventListener("pointerleave", () => setTimeout(() => !isHeld(list) && letGo(), 200));
}
window.addEventListener("popstate", () => location.reload());
document.addEventListener("visibilitychange", visibility);
for (const call of all("[data-call]")) born.set(call, performance.now());
for (const log of all("[data-log]")) log.scrollTop = log.scrollHeight;
dress(document);
visibility();
