// From values to positions: linear, logarithmic and categorical scales, ticks, and the colours of objectives.
const MARGIN = 0.05;

/** Return a scale of a column between two positions: `at` gives positions, NaN for what has none; `ticks` labels. */
function scaleOf(column, start, end) {
  if (column.categories) return categories(column.categories, start, end);
  let [low, high] = column.domain ?? [Infinity, -Infinity];
  if (!column.domain) {
    for (const value of column.values) {
      if (typeof value !== "number") continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  const scale = numbers(low, high, column.log === true && low > 0, start, end);
  if (column.ticks) scale.ticks = () => column.ticks.map((value) => [scale.at(value), short(value)]);
  return scale;
}

function numbers(low, high, log, start, end) {
  const own = (value) => (log ? Math.log10(value) : value);
  let [first, last] = Number.isFinite(low) ? [own(low), own(high)] : [0, 1];
  const pad = last > first ? (last - first) * MARGIN : Math.abs(first) * 0.05 || 0.5;
  [first, last] = [first - pad, last + pad];
  const position = (value) => start + ((own(value) - first) / (last - first)) * (end - start);
  // Outliers lie at the end of the axis, as in the report.
  const inside = (value) => Math.min(Math.max(value, low), high);
  return {
    at: (value) => (typeof value === "number" ? position(inside(value)) : NaN),
    ticks: (count) =>
      (log ? logTicks(first, last, count) : linearTicks(first, last, count)).map((value) => [
        position(value),
        short(value),
      ]),
  };
}

function categories(names, start, end) {
  const step = (end - start) / names.length;
  const at = (value) => (typeof value === "number" ? start + (value + 0.5) * step : NaN);
  const shorten = (name) => (name.length > 16 ? `${name.slice(0, 15)}…` : name);
  const stride = (count) => Math.max(1, Math.ceil(names.length / (2 * count)));
  return {
    at,
    ticks: (count) =>
      names.map((name, place) => [at(place), shorten(name)]).filter((_, place) => place % stride(count) === 0),
  };
}

function linearTicks(first, last, count) {
  const rough = (last - first) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let number = Math.ceil(first / step); number * step <= last; number++) {
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(first, last, count) {
  const factors = last - first > 2.5 ? [1] : last - first > 1 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let decade = Math.floor(first); decade <= Math.ceil(last); decade++) {
    for (const factor of factors) {
      const value = Number(`${factor}e${decade}`);
      if (Math.log10(value) >= first && Math.log10(value) <= last) ticks.push(value);
    }
  }
  return ticks.filter((_, place) => place % Math.max(1, Math.ceil(ticks.length / (count + 2))) === 0);
}

const LEVELS = 16;

/** Return the colours of the page as canvases need them: a ramp from worst to best, and single ones. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const stops = [0, 1, 2, 3, 4].map((place) => rgb(color(`--ramp-${place}`)));
  const ramp = Array.from({ length: LEVELS }, (_, level) => {
    const place = (level / (LEVELS - 1)) * (stops.length - 1);
    const low = stops[Math.floor(place)];
    const high = stops[Math.ceil(place)];
    return `rgb(${low.map((part, channel) => Math.round(part + (high[channel] - part) * (place % 1))).join(" ")})`;
  });
  return { ramp, none: color("--ramp-0"), best: color("--best"), card: color("--card"), soft: color("--soft") };
}

function rgb(hex) {
  return [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
}

/** Return the level of each trial's objective: 0 is the worst, LEVELS - 1 the best; -1 has none. */
function levelsOf(column, goal) {
  const scale = scaleOf({ ...column }, 0, 1);
  return Int8Array.from(column.values, (value) => {
    const place = scale.at(value);
    if (Number.isNaN(place)) return -1;
    const good = goal === "maximize" ? place : 1 - place;
    return Math.min(LEVELS - 1, Math.max(0, Math.floor(good * LEVELS)));
  });
}

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

/** Draw the axes of curves over steps: lines with labels for the values, and labels `below` for the steps. */
function drawStepAxes(frame, [across, steps], [up, values], { left, right, below }) {
  for (const [y, label] of up.ticks(values)) {
    frame.append(svg("path", { class: "axis", d: `M${left} ${y}H${right}` }), svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, label));
  }
  for (const [x, label] of across.ticks(steps)) frame.append(svg("text", { x, y: below, "text-anchor": "middle" }, label));
}

/** Return the path of a curve, which ends where the steps begin again, as with folds. */
function curvePath(steps, values, across, up) {
  return steps.map((step, at) => `${at && step > steps[at - 1] ? "L" : "M"}${across.at(step).toFixed(1)} ${up.at(values[at]).toFixed(1)}`).join("");
}

/** Draw curves over their steps into a box, the last on top: each has steps, values and the style of its line. */
function drawCurves(box, curves, column = {}) {
  const [width, height] = [box.clientWidth, box.clientHeight];
  const across = scaleOf({ values: curves.flatMap(({ steps }) => steps) }, 64, width - 20);
  const up = scaleOf({ ...column, values: curves.flatMap(({ values }) => values) }, height - 40, 14);
  const frame = svg("svg", { "aria-hidden": "true" });
  drawStepAxes(frame, [across, 8], [up, 5], { left: 64, right: width - 20, below: height - 22 });
  frame.append(svg("text", { class: "title", x: width / 2, y: height - 5, "text-anchor": "middle" }, "step"));
  for (const { steps, values, style } of curves) frame.append(svg("path", { d: curvePath(steps, values, across, up), fill: "none", ...style }));
  box.replaceChildren(frame);
}

/** Make a canvas of a plot sharp on this screen, empty it, and return its context in CSS pixels. */
function fresh(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
