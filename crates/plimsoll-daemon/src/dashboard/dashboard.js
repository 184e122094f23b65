// The page: fetches the state once, then follows the daemon's stream of events. Names of programs are other people's text:
// they are only ever set as text, never as markup.
"use strict";

const SAMPLES_MAX = 600, EVENTS_MAX = 200, STALE_MS = 10000, POLL_MS = 2000;
const history = new Map();
const recent = [];
let state = null, lastEvent = 0, lastHeard = 0;

const byId = id => document.getElementById(id);
// A token in the address (`#token=…`) lets this page change priorities and pins. It is not sent anywhere else.
const token = new URLSearchParams(location.hash.slice(1)).get("token");

function element(name, options = {}, ...children) {
  const made = document.createElement(name);
  const { text, ...attributes } = options;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

function bytes(count) {
  if (count === null || count === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0, value = count;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1 }
  return `${at === 0 ? value : value.toFixed(value < 9.95 ? 2 : 1)} ${units[at]}`;
}

function since(from) {
  const seconds = Math.max(0, Math.round((Date.now() - from) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

const clock = at => new Date(at).toLocaleTimeString([], { hour12: false });
const percent = share => `${Math.round(share * 100)} %`;
const LEVELS = { low: "good", medium: "", high: "warn", critical: "bad" };
const WHATS = { refused: "bad", "not-freed": "bad", overdue: "warn", recalled: "warn", stopped: "bad", warning: "warn", granted: "good", verified: "good" };
const SORTS = { lease: "", engine: "engine", member: "shares the book", stranger: "no lease" };

// ---------------------------------------------------------------------------------------------------------- devices

function part(kind, share) {
  const made = element("span", { class: `part ${kind}` });
  made.style.width = `${Math.max(0, Math.min(share, 1)) * 100}%`;
  return made;
}

function deviceCard(device) {
  const capacity = device.capacity || 1;
  const leased = Math.max(0, device.used - device.strangers);
  const idle = Math.max(0, device.promised - leased);
  const mark = element("span", { class: "line-mark", title: `the line: ${bytes(device.line)}` });
  mark.style.left = `calc(${Math.min((device.line + device.strangers) / capacity, 1) * 100}% - 2px)`;
  const bar = element("div", { class: "bar", role: "img", "aria-label": `${bytes(device.used)} of ${bytes(device.capacity)} in use` },
    part("leased", leased / capacity), part("idle", idle / capacity), part("strangers", device.strangers / capacity), mark);
  const figure = (name, value) => element("span", {}, `${name} `, element("b", { text: value }));
  const card = element("article", { class: "device", "data-device": device.name },
    element("div", { class: "name" },
      element("b", { text: device.name }), element("span", { text: device.card }),
      element("span", { class: `chip ${LEVELS[device.level] ?? ""}`, text: `${percent(device.pressure)} taken` })),
    bar,
    element("p", { class: "figures" },
      figure("promised", bytes(device.promised)), figure("line", bytes(device.line)), figure("in use", bytes(device.used)),
      figure("of", bytes(device.capacity)), ...(device.members ? [figure("by the book", bytes(device.members))] : []),
      ...(device.strangers ? [figure("strangers", bytes(device.strangers))] : []),
      ...(device.reserve ? [figure("reserve", bytes(device.reserve))] : [])));
  if (device.by_sum) card.append(element("p", { class: "figures", text: `what is in use counts as a sum: ${device.by_sum}` }));
  const samples = history.get(device.name) ?? [];
  if (samples.length > 1) card.append(...plot(samples, capacity, `memory of ${device.name} over time`));
  return card;
}

// ---------------------------------------------------------------------------------------------------------- holders

function quality(holder) {
  if (holder.sort !== "lease" && holder.sort !== "engine") return element("span", { text: "–" });
  const meter = element("i");
  meter.style.setProperty("--is", `${holder.quality * 100}%`);
  const asked = holder.rungs > 1 ? `rung ${holder.rung + 1} of ${holder.rungs}; recommended ${percent(holder.recommended)}` : "one rung";
  return element("span", { class: "quality", title: asked }, meter, percent(holder.quality));
}

function phase(holder) {
  if (holder.recall) {
    const step = { "step-down": "asked to step down", leave: "asked to leave", stop: "being stopped" }[holder.recall.step];
    return element("span", { class: `chip ${holder.recall.step === "step-down" ? "warn" : "bad"}`, text: step, title: holder.recall.because });
  }
  if (holder.phase === "returning") return element("span", { class: "chip warn", text: "returning", title: "it has left; the driver has not said so yet" });
  if (holder.phase === "recalled") return element("span", { class: "chip warn", text: "recalled" });
  if (holder.sort === "stranger") return element("span", { class: "chip", text: "no lease" });
  if (holder.sort === "member") return element("span", { class: "chip", text: "by the book", title: "a program of yours without a lease; all of them share this device by a book" });
  return element("span", { class: "chip good", text: holder.pinned ? "pinned" : "held" });
}

function priority(holder) {
  if (!token || holder.sort !== "lease") return element("span", { text: holder.sort === "stranger" || holder.sort === "member" ? "–" : holder.priority });
  const select = element("select", { "aria-label": `priority of ${holder.name}` });
  for (const level of ["background", "low", "normal", "high", "critical"]) {
    const option = element("option", { value: level, text: level });
    option.selected = level === holder.priority;
    select.append(option);
  }
  select.addEventListener("change", () => change(holder.lease, "priority", { priority: select.value }));
  const pin = element("button", { type: "button", text: holder.pinned ? "unpin" : "pin" });
  pin.addEventListener("click", () => change(holder.lease, "pin", { pinned: !holder.pinned }));
  return element("span", {}, select, pin);
}

async function change(lease, what, body) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const answer = await fetch(`api/leases/${lease}/${what}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) warn(`${what} was refused: ${answer.status} ${(await answer.text()).slice(0, 200)}`);
  await refresh();
}

function warn(text) {
  byId("warnings").hidden = false;
  byId("warnings").append(element("li", { text }));
}

function holderRow(holder) {
  const promised = holder.portions.reduce((sum, each) => sum + each.promised, 0);
  const known = holder.portions.some(each => each.used !== null && each.used !== undefined);
  const used = known ? holder.portions.reduce((sum, each) => sum + (each.used ?? 0), 0) : null;
  const about = [holder.sort === "lease" || holder.sort === "engine" ? holder.kind : "", SORTS[holder.sort], holder.pid ? `pid ${holder.pid}` : "",
    holder.lease !== null && holder.lease !== undefined ? `lease ${holder.lease}` : "",
    holder.batch_items ? `${holder.batch_items} items to come` : ""].filter(Boolean).join(" · ");
  const cell = (title, options, ...children) => element("td", { ...(title ? { "data-title": title } : {}), ...options }, ...children);
  const isOver = used !== null && holder.sort !== "stranger" && used > promised;
  return element("tr", { class: holder.sort },
    element("td", { class: "program" }, holder.name, element("small", { text: about })),
    cell("on", { text: holder.portions.map(each => each.device).join(", ") }),
    cell("promised", { class: "number", text: holder.sort === "stranger" ? "–" : bytes(promised) }),
    cell("in use", { class: isOver ? "number over" : "number", text: bytes(used) }),
    cell("quality", {}, quality(holder)),
    cell("", {}, priority(holder)),
    cell("", {}, phase(holder)),
    cell("since", { class: "number", text: holder.since_ms ? since(holder.since_ms) : "–" }));
}

function matches(holder, words) {
  const text = [holder.name, holder.kind, holder.sort, holder.priority, ...holder.portions.map(each => each.device)].join(" ").toLowerCase();
  return words.every(word => text.includes(word));
}

// ------------------------------------------------------------------------------------------------- queue and events

function queueRow(waiting) {
  const where = waiting.devices.length ? waiting.devices.join(" and ") : "any device";
  const estimate = waiting.estimate_ms === null || waiting.estimate_ms === undefined ? "" : ` · about ${Math.ceil(waiting.estimate_ms / 1000)} s`;
  return element("li", {},
    element("div", { class: "line1" },
      element("b", { text: waiting.name }), element("small", { text: `${waiting.kind} · ${waiting.priority} · ${bytes(waiting.bytes)} of ${where}` }),
      element("time", { text: since(waiting.since_ms) })),
    element("small", { text: waiting.reason + estimate }));
}

function eventRow(event) {
  return element("li", { "data-what": event.what },
    element("div", { class: "line1" },
      element("span", { class: `chip ${WHATS[event.what] ?? ""}`, text: event.what }),
      element("span", { text: event.name }),
      element("time", { text: clock(event.at_ms) })),
    element("small", { text: event.text }));
}

// ------------------------------------------------------------------------------------------------------------- draw

// Whoever chooses something in the table is not interrupted by a redraw of it.
const isBeingUsed = table => table.contains(document.activeElement) && document.activeElement.tagName === "SELECT";

function draw() {
  if (!state) return;
  byId("about").textContent = `plimsoll ${state.version} · policy ${state.policy} · ${state.holders.length} holders, ${state.queue.length} waiting`;
  byId("warnings").hidden = state.warnings.length === 0;
  byId("warnings").replaceChildren(...state.warnings.map(text => element("li", { text })));
  byId("devices").replaceChildren(...state.devices.map(deviceCard));
  drawHolders();
  byId("queue-count").textContent = state.queue.length || "";
  byId("queue").replaceChildren(...state.queue.map(queueRow));
  byId("queue-nothing").hidden = state.queue.length > 0;
  byId("events").replaceChildren(...recent.map(eventRow));
  byId("events-nothing").hidden = recent.length > 0;
}

function drawHolders() {
  const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = state.holders.filter(holder => matches(holder, words));
  byId("holders-count").textContent = words.length ? `${shown.length} of ${state.holders.length}` : state.holders.length || "";
  byId("holders-nothing").hidden = state.holders.length > 0;
  byId("holders").hidden = state.holders.length === 0;
  const table = byId("holders");
  if (!isBeingUsed(table)) table.tBodies[0].replaceChildren(...shown.map(holderRow));
}

let isDrawing = false;
function drawSoon() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => { isDrawing = false; draw() });
}

// ------------------------------------------------------------------------------------------------------------- hear

function heardState(heard) {
  state = heard;
  lastHeard = Date.now();
  for (const device of heard.devices) {
    const samples = history.get(device.name) ?? [];
    const last = samples[samples.length - 1];
    // Either way: the clock may have been set back.
    if (!last || Math.abs(heard.at_ms - last.at_ms) >= 900) {
      samples.push({ at_ms: heard.at_ms, line: device.line, promised: device.promised, used: device.used, strangers: device.strangers });
      samples.splice(0, samples.length - SAMPLES_MAX);
    }
    history.set(device.name, samples);
  }
  drawSoon();
}

function heardEvent(event) {
  if (event.id <= lastEvent) return;
  lastEvent = event.id;
  recent.unshift(event);
  recent.splice(EVENTS_MAX);
  drawSoon();
}

async function json(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function refresh() {
  heardState(await json("api/state"));
}

async function begin() {
  try {
    const past = await json("api/history");
    for (const [device, samples] of Object.entries(past)) history.set(device, samples.slice(-SAMPLES_MAX));
    (await json("api/events")).slice(-EVENTS_MAX).forEach(heardEvent);
    await refresh();
  } catch (error) {
    live(false, String(error.message ?? error));
  }
  follow();
}

function follow() {
  const stream = new EventSource("api/stream");
  stream.addEventListener("state", message => { heardState(JSON.parse(message.data)); live(true) });
  stream.addEventListener("event", message => { heardEvent(JSON.parse(message.data)); live(true) });
  stream.onopen = () => live(true);
  // The browser tries again by itself.
  stream.onerror = () => live(false, "the daemon does not answer");
}

function live(isLive, why) {
  const mark = byId("live");
  mark.classList.toggle("on", isLive);
  mark.classList.toggle("off", !isLive);
  byId("live-text").textContent = isLive ? "live" : why;
}

byId("find").addEventListener("input", () => state && drawHolders());
// A stream that says nothing may be dead: ask, so that figures on the page are never old without a word.
setInterval(() => {
  if (Date.now() - lastHeard > STALE_MS) refresh().then(() => live(true), () => live(false, "the daemon does not answer"));
  else drawSoon();
}, POLL_MS);
begin();
