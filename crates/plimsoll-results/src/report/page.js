"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector, within = document) => within.querySelector(selector);
  const body = one("tbody");
  const row = (number) => document.getElementById("row-" + number);

  // Sorting: what has no value comes last whichever way.
  const byText = new Intl.Collator(undefined, { numeric: true });
  const key = (line, column) => line.cells[column].dataset.by;
  const number = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text));
  const compare = (a, b, isText) => (isText ? byText.compare(a, b) : number(a) - number(b) || 0);
  function sort(heading) {
    const down = heading.getAttribute("aria-sort") === "ascending";
    const column = heading.cellIndex, isText = heading.classList.contains("file"), turn = down ? -1 : 1;
    all("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const lines = [...body.rows].sort((a, b) => {
      const x = key(a, column), y = key(b, column);
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      return turn * compare(x, y, isText);
    });
    body.append(...lines);
  }
  all("th button").forEach((button) => button.addEventListener("click", () => sort(button.closest("th"))));

  // What is shown: series by their buttons, references by the list.
  const hiddenSeries = new Set();
  let reference = "";
  const choose = one(".choose");
  function filter() {
    const isOut = ({ dataset: { series, reference: of } }) =>
      (series !== undefined && hiddenSeries.has(series)) || (reference !== "" && of !== undefined && of !== reference);
    all(".line, .point, tbody tr, .dashes > span").forEach((part) => part.classList.toggle("out", isOut(part)));
    settleTabs();
  }
  all(".series").forEach((button) => button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(shown));
    hiddenSeries[shown ? "delete" : "add"](button.dataset.series);
    filter();
  }));
  if (choose) {
    choose.hidden = false;
    one("select", choose).addEventListener("change", (event) => { reference = event.target.value; filter(); });
  }

  // Points: the nearest one speaks, and its file is marked on every plot and in the table.
  const tip = one("#tip");
  const reach = 36;
  all(".point").forEach((point) => {
    const title = one("title", point);
    point.setAttribute("role", "img");
    point.setAttribute("aria-label", title.textContent);
    title.remove();
  });
  const shownPoints = (chart) => all(".point:not(.out)", chart);
  const centre = (point) => {
    const box = point.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  function nearest(chart, x, y) {
    let found = null, least = reach * reach;
    for (const point of shownPoints(chart)) {
      const [px, py] = centre(point), distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [found, least] = [point, distance];
    }
    return found;
  }
  function element(name, text, className) {
    const made = document.createElement(name);
    made.textContent = text;
    if (className) made.className = className;
    return made;
  }
  function leave() {
    tip.hidden = true;
    all(".near").forEach((part) => part.classList.remove("near"));
    all(".busy").forEach((chart) => chart.classList.remove("busy"));
  }
  function visit(point) {
    leave();
    const line = row(point.dataset.row), figure = point.closest("figure");
    all(`.point[data-row="${point.dataset.row}"]`).forEach((same) => {
      same.classList.add("near");
      same.closest("svg").classList.add("busy");
    });
    line.classList.add("near");
    const picture = one("img.picture", line), now = one("figcaption b", figure).textContent;
    tip.replaceChildren();
    if (picture) tip.append(picture.cloneNode());
    tip.append(element("b", one("td.file b", line).textContent));
    all("td[data-name]", line).filter((cell) => cell.dataset.name !== "Pixels").forEach((cell) =>
      tip.append(element("span", cell.dataset.name + " " + cell.textContent.replace("★", ""), cell.dataset.name === now ? "now" : "")));
    tip.hidden = false;
    const [x, y] = centre(point), box = tip.getBoundingClientRect();
    const left = x + 18 + box.width > innerWidth ? x - 18 - box.width : x + 18;
    tip.style.left = Math.max(6, Math.min(left, innerWidth - box.width - 6)) + "px";
    tip.style.top = Math.max(6, Math.min(y - box.height / 2, innerHeight - box.height - 6)) + "px";
  }
  function walk(chart, event) {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const points = shownPoints(chart), at = points.indexOf(document.activeElement);
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(row(points[at].dataset.row)); }
    if (event.key === "Escape") leave();
    if (!step) return;
    event.preventDefault();
    const next = points[(at + step + points.length) % points.length];
    points[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
  const charts = all(".chart");
  // One stop for the tab key in each plot; arrows go on from there.
  function settleTabs() {
    charts.forEach((chart) => {
      all(".point", chart).forEach((point) => { point.tabIndex = -1; });
      const [first] = shownPoints(chart);
      if (first) first.tabIndex = 0;
    });
  }
  charts.forEach((chart) => {
    const follow = (event) => {
      const point = nearest(chart, event.clientX, event.clientY);
      if (point) visit(point); else leave();
      return point;
    };
    chart.addEventListener("pointermove", follow);
    chart.addEventListener("pointerleave", leave);
    chart.addEventListener("click", (event) => { const point = follow(event); if (point) open(row(point.dataset.row)); });
    chart.addEventListener("keydown", (event) => walk(chart, event));
    chart.addEventListener("focusin", (event) => { if (event.target.matches(":focus-visible")) visit(event.target); });
    chart.addEventListener("focusout", leave);
  });
  settleTabs();
  addEventListener("scroll", leave, { passive: true });

  // The viewer: reference, file and heat map in one place.
  const viewer = one("#viewer");
  if (!viewer) return;
  const stage = one(".stage", viewer), slider = one("input", viewer);
  const layers = Object.fromEntries(all(".layer", viewer).map((layer) => [layer.dataset.layer, layer]));
  const modes = all("[data-mode]", viewer);
  const zoom = one("[data-zoom]", viewer);
  // How many pixels of the screen one of the image has; 0 shows all of it, made small.
  const zooms = [0, 1, 2, 4];
  let current = null, mode = "split", magnified = 0;
  const there = (name) => layers[name].hasAttribute("src");
  const possible = (name) => (name === "split" ? there("reference") && there("variant") : there(name));
  function give(name, image) {
    if (image) layers[name].src = image.src; else layers[name].removeAttribute("src");
  }
  function show(wanted) {
    mode = possible(wanted) ? wanted : ["split", "variant", "heat", "reference"].find(possible);
    const isSplit = mode === "split";
    stage.classList.toggle("split", isSplit);
    for (const name in layers) layers[name].classList.toggle("shown", name === mode || (isSplit && name !== "heat"));
    modes.forEach((button) => {
      button.disabled = !possible(button.dataset.mode);
      button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    });
    one(".slide", viewer).hidden = !isSplit;
    one(".viewer-bar", viewer).hidden = mode !== "heat";
    const place = magnified && one(".detail", current) ? ", " + magnified + ":1 from " + one(".detail", current).dataset.place : "";
    const [left, right] = { split: ["reference", "file" + place], reference: ["reference" + place, ""], variant: ["", "file" + place], heat: ["heat map", ""] }[mode];
    one(".tag.left", viewer).textContent = left;
    one(".tag.right", viewer).textContent = right;
  }
  function fill(line) {
    current = line;
    const detail = one(".detail", line), isClose = magnified > 0 && detail !== null;
    const [width, height] = (isClose ? detail : line).dataset.shape.split(" ").map(Number);
    stage.style.setProperty("--shape", String(width / height));
    stage.style.setProperty("--wide", width * magnified / devicePixelRatio + "px");
    stage.classList.toggle("close", isClose);
    give("reference", isClose ? one("[data-of=reference]", detail) : one(`img.reference[data-reference="${line.dataset.reference}"]`));
    give("variant", isClose ? one("[data-of=variant]", detail) : one("img.picture", line));
    give("heat", isClose ? null : one("img.map", line));
    zoom.disabled = detail === null;
    zoom.setAttribute("aria-pressed", String(isClose));
    one("span", zoom).textContent = (isClose ? magnified : 1) + ":1";
    one("#viewer-name").textContent = one("td.file b", line).textContent;
    const scores = one(".viewer-scores", viewer);
    scores.replaceChildren(...all("td[data-name]", line).map((cell) => {
      const part = element("span", cell.dataset.name + " ");
      part.append(element("b", cell.textContent.replace("★", "")));
      return part;
    }));
    show(mode);
  }
  function open(line, wanted) {
    if (!viewer || !one(".open", line)) return;
    leave();
    if (wanted) mode = wanted;
    fill(line);
    if (!viewer.open) viewer.showModal();
  }
  function step(by) {
    const lines = all("tbody tr:not(.out)").filter((line) => one(".open", line));
    fill(lines[(lines.indexOf(current) + by + lines.length) % lines.length]);
  }
  function cut(share) {
    slider.value = String(share);
    stage.style.setProperty("--cut", share + "%");
  }
  body.addEventListener("click", (event) => {
    const button = event.target.closest(".open");
    if (button) open(button.closest("tr"), event.target.matches(".map") ? "heat" : undefined);
  });
  modes.forEach((button) => button.addEventListener("click", () => show(button.dataset.mode)));
  function magnify() {
    if (zoom.disabled) return;
    magnified = zooms[(zooms.indexOf(magnified) + 1) % zooms.length];
    fill(current);
  }
  zoom.addEventListener("click", magnify);
  all("[data-step]", viewer).forEach((button) => button.addEventListener("click", () => step(Number(button.dataset.step))));
  one("[data-close]", viewer).addEventListener("click", () => viewer.close());
  viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
  slider.addEventListener("input", () => cut(slider.value));
  const drag = (event) => {
    if (mode !== "split" || !event.buttons) return;
    const box = stage.getBoundingClientRect();
    cut(Math.max(0, Math.min(100, (event.clientX - box.x) / box.width * 100)));
  };
  stage.addEventListener("pointerdown", drag);
  stage.addEventListener("pointermove", drag);
  viewer.addEventListener("keydown", (event) => {
    const wanted = modes[Number(event.key) - 1];
    if (wanted) show(wanted.dataset.mode);
    if (event.key === "5") magnify();
    const isSliding = event.target === slider;
    if (event.key === "ArrowRight" && !isSliding) step(1);
    if (event.key === "ArrowLeft" && !isSliding) step(-1);
    if (event.key === " " && !event.target.matches("button")) {
      event.preventDefault();
      show(mode === "reference" ? "variant" : "reference");
    }
  });
})();
