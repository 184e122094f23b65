// One device's last minutes as a small plot: what is in use (filled), what is promised (dashed), the line.
// Owns nothing of the page: it is given samples and gives back elements.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const PLOT = { width: 400, height: 80, top: 4, bottom: 4 };

function svg(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function plot(samples, capacity, label) {
  const { width, height, top, bottom } = PLOT;
  const root = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const first = samples[0].at_ms, last = samples[samples.length - 1].at_ms;
  const span = Math.max(last - first, 1);
  const x = at => width * (at - first) / span;
  const y = bytes => top + (height - top - bottom) * (1 - Math.min(bytes / capacity, 1));
  // What strangers hold lies below what is promised: the line and promises are drawn above it.
  const height_of = (sample, figure) => figure === "used" ? sample.used : sample[figure] + sample.strangers;
  const path = figure => samples.map((sample, at) => `${at ? "L" : "M"}${x(sample.at_ms).toFixed(1)} ${y(height_of(sample, figure)).toFixed(1)}`).join("");
  for (const share of [0, 0.5, 1]) {
    const at = y(capacity * share);
    root.append(svg("path", { class: "grid", d: `M0 ${at}H${width}` }));
  }
  root.append(svg("path", { class: "used", d: `${path("used")}L${x(last)} ${y(0)}L${x(first)} ${y(0)}Z` }));
  root.append(svg("path", { class: "used-edge", d: path("used") }));
  root.append(svg("path", { class: "promised", d: path("promised") }));
  root.append(svg("path", { class: "line", d: path("line") }));
  return [root, axis(ago(span))];
}

// Words under the plot, outside of it: the plot is stretched to its card, and they must not be.
function axis(from) {
  const words = document.createElement("p");
  words.className = "axis";
  for (const text of [from, "now"]) {
    const word = document.createElement("span");
    word.textContent = text;
    words.append(word);
  }
  return words;
}

function ago(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 100) return `${seconds} s ago`;
  return `${Math.round(seconds / 60)} min ago`;
}
