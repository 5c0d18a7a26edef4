// The charts: each has a canvas of all trials, a canvas of the selected ones, and axes, brush and pointer as SVG.
// A brush redraws only the selected trials; all others stay as they are, dimmed.
const NEAR = 12;
const DRAG = 4;
const NAMES = 116;
const TRIAL_HEIGHTS = { left: 56, right: 14, top: 10, bottom: 36 };

class Plot {
  /** Free pixels above the plot, in addition to those that every chart has. */
  above = 0;

  constructor(figure, spec, model, selection) {
    this.spec = spec;
    this.model = model;
    this.selection = selection;
    this.box = figure.querySelector(".plot");
    this.context = el("canvas", { className: "context" });
    this.chosen = el("canvas", { className: "chosen" });
    this.frame = svg("svg", { "aria-hidden": "true" });
    this.axes = svg("svg", { "aria-hidden": "true" });
    this.labels = svg("g");
    this.brushes = svg("g");
    this.pointer = svg("g");
    this.frame.append(this.labels, this.brushes, this.pointer);
    this.box.append(this.axes, this.context, this.chosen, this.frame);
    this.x = spec.x[0];
    if (spec.x.length > 1 && spec.mark !== "parallel") this.#addSwitch(figure);
    this.#listen();
  }

  /** Let readers choose what is on the x axis. */
  #addSwitch(figure) {
    const group = el("div", { className: "switch", role: "group", "aria-label": "x axis" });
    for (const key of this.spec.x) {
      const button = el("button", { type: "button", "aria-pressed": String(key === this.x) }, key);
      button.addEventListener("click", () => {
        this.x = key;
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
        this.brush(null);
        this.draw();
      });
      group.append(button);
    }
    figure.querySelector("figcaption").append(group);
  }

  column(key) {
    return this.model.columns.get(key);
  }

  /** Measure the plot, and draw all of it. */
  draw() {
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    const { right, top, bottom } = TRIAL_HEIGHTS;
    const left = this.spec.y && this.column(this.spec.y).categories ? NAMES : TRIAL_HEIGHTS.left;
    this.area = { left, right: this.width - right, top: top + this.above, bottom: this.height - bottom };
    this.colors = palette();
    this.axes.replaceChildren();
    this.labels.replaceChildren();
    this.layOut();
    this.paint(fresh(this.context, this.width, this.height), () => true);
    this.drawSelection();
    this.isDrawn = true;
  }

  drawSelection() {
    const { isActive, mask } = this.selection;
    this.context.classList.toggle("dim", isActive);
    const canvas = fresh(this.chosen, this.width, this.height);
    if (isActive) this.paint(canvas, (trial) => mask[trial] === 1);
  }

  drawPointer() {
    const trial = this.selection.hovered;
    this.pointer.replaceChildren();
    if (trial >= 0) this.point(trial);
  }

  layOut() {
    const { left, right, top, bottom } = this.area;
    this.scaleX = scaleOf(this.column(this.x), left, right);
    this.scaleY = scaleOf(this.column(this.spec.y), bottom, top);
    this.drawAxes(this.column(this.x).title);
    const across = this.column(this.x).values;
    const up = this.column(this.spec.y).values;
    this.places = across.map((value, trial) => [this.scaleX.at(value), this.scaleY.at(up[trial])]);
  }

  drawAxes(title) {
    const { left, right } = this.area;
    for (const [place, label] of this.scaleY.ticks(5)) {
      this.axes.append(svg("path", { class: "axis", d: `M${left} ${place}H${right}` }));
      this.axes.append(svg("text", { x: left - 8, y: place + 4, "text-anchor": "end" }, label));
    }
    this.drawAxisX(title);
  }

  drawAxisX(title) {
    const { left, right, bottom } = this.area;
    this.axes.append(svg("path", { class: "axis", d: `M${left} ${bottom}H${right}` }));
    let end = -Infinity;
    for (const [place, label] of this.scaleX.ticks(Math.max(2, Math.round((right - left) / 90)))) {
      const reach = label.length * 3.6;
      if (place - reach < end + 6) continue;
      end = place + reach;
      this.axes.append(svg("text", { x: place, y: bottom + 16, "text-anchor": "middle" }, label));
    }
    const middle = (left + right) / 2;
    this.axes.append(svg("text", { class: "title", x: middle, y: bottom + 33, "text-anchor": "middle" }, title));
  }

  /** Paint dots of the trials that pass, worst first, those of a colour at once, and the best last. */
  paint(canvas, passes) {
    const { ramp, best, card } = this.colors;
    const size = this.places.length > 2000 ? 2.2 : this.places.length > 200 ? 3 : 4.5;
    const dot = (trial, radius) => {
      const [x, y] = this.places[trial];
      if (!passes(trial) || !(x === x && y === y)) return;
      canvas.moveTo(x + radius, y);
      canvas.arc(x, y, radius, 0, 7);
    };
    canvas.strokeStyle = card;
    canvas.lineWidth = 1;
    const winner = this.model.best === null ? [] : [this.model.best];
    [...this.model.byLevel.slice(1), winner].forEach((trials, level) => {
      canvas.beginPath();
      for (const trial of trials) dot(trial, level === LEVELS ? size + 2 : size);
      canvas.fillStyle = level === LEVELS ? best : ramp[level];
      canvas.fill();
      if (size > 3) canvas.stroke();
    });
  }

  point(trial) {
    const [x, y] = this.places[trial] ?? [NaN];
    if (x === x && y === y) this.pointer.append(svg("circle", { class: "hover", cx: x, cy: y, r: 8 }));
  }

  /** Return the trial nearest to a point; -1 if none is near. */
  nearest(x, y) {
    let found = -1;
    let least = NEAR * NEAR;
    for (let trial = 0; trial < this.places.length; trial++) {
      const distance = (this.places[trial][0] - x) ** 2 + (this.places[trial][1] - y) ** 2;
      if (distance < least && this.mayPoint(trial)) [found, least] = [trial, distance];
    }
    return found;
  }

  mayPoint(trial) {
    return !this.selection.isActive || this.selection.mask[trial] === 1;
  }

  /** Select what is between two corners; null removes the brush. */
  brush(from, to) {
    this.brushes.replaceChildren();
    this.hasBrush = from !== null;
    if (from === null) return this.selection.set(this.spec.name, null);
    const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)];
    const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
    this.outline(left, top, right, bottom);
    this.selection.set(this.spec.name, this.tester(left, right, top, bottom));
  }

  outline(left, top, right, bottom) {
    const [width, height] = [right - left, bottom - top];
    this.brushes.append(svg("rect", { class: "brush", x: left, y: top, width, height }));
  }

  tester(left, right, top, bottom) {
    return (trial) => {
      const [x, y] = this.places[trial];
      return x >= left && x <= right && y >= top && y <= bottom;
    };
  }

  /** Forget the brush without a change of the selection, which was cleared. */
  forget() {
    this.hasBrush = false;
    this.brushes.replaceChildren();
  }

  #listen() {
    let from = null;
    let dragged = false;
    const place = (event) => {
      const box = this.box.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    let last = null;
    const brushed = onceAFrame(() => from && this.brush(from, last));
    this.box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.target.closest("button")) return;
      from = place(event);
      dragged = false;
      this.box.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    this.box.addEventListener("pointermove", (event) => {
      const here = place(event);
      if (from && (dragged || Math.hypot(here.x - from.x, here.y - from.y) > DRAG)) {
        [dragged, last] = [true, here];
        this.selection.hover(-1);
        brushed();
      } else if (!from && this.isDrawn) {
        const trial = this.nearest(here.x, here.y);
        this.selection.hover(trial);
        this.model.tip(trial, event);
      }
    });
    this.box.addEventListener("pointerleave", () => {
      this.selection.hover(-1);
      this.model.tip(-1);
    });
    this.box.addEventListener("pointerup", (event) => {
      if (!from) return;
      const start = from;
      if (dragged) this.brush(from, place(event));
      from = null;
      if (dragged) return;
      if (this.hasBrush) this.brush(null, start);
      else if (this.selection.hovered >= 0) this.model.open(this.selection.hovered);
    });
    this.box.addEventListener("pointercancel", () => {
      from = null;
    });
  }
}

/** Points in the order of the x axis, with the best value so far as a line. */
class Steps extends Plot {
  paint(canvas, passes) {
    const { best, soft } = this.colors;
    const { order, better } = this.model;
    const up = this.column(this.spec.y).values;
    const sorted = [...order].filter((trial) => this.model.eligible[trial] && this.places[trial][0] === this.places[trial][0]);
    sorted.sort((one, other) => this.places[one][0] - this.places[other][0]);
    let record = null;
    canvas.beginPath();
    for (const trial of sorted) {
      if (up[trial] === null || !passes(trial)) continue;
      const [x, y] = this.places[trial];
      if (record === null) canvas.moveTo(x, y);
      else canvas.lineTo(x, this.scaleY.at(record));
      if (record === null || better(up[trial], record)) record = up[trial];
      canvas.lineTo(x, this.scaleY.at(record));
    }
    if (record !== null) canvas.lineTo(this.area.right, this.scaleY.at(record));
    canvas.strokeStyle = best;
    canvas.lineWidth = 1.5;
    canvas.stroke();
    // Trials without a result are crosses on the axis.
    canvas.beginPath();
    for (let trial = 0; trial < up.length; trial++) {
      const x = this.places[trial][0];
      if (up[trial] !== null || !passes(trial) || x !== x) continue;
      canvas.moveTo(x - 3, this.area.bottom - 3);
      canvas.lineTo(x + 3, this.area.bottom + 3);
      canvas.moveTo(x - 3, this.area.bottom + 3);
      canvas.lineTo(x + 3, this.area.bottom - 3);
    }
    canvas.strokeStyle = soft;
    canvas.stroke();
    super.paint(canvas, passes);
  }
}

/** Points of two parameters. The title of the second is above its axis. */
class Pair extends Plot {
  above = 20;

  drawAxes(title) {
    super.drawAxes(title);
    this.axes.append(svg("text", { class: "title", x: 2, y: 12 }, this.column(this.spec.y).title));
  }
}

/** Points, with the Pareto front as a line. */
class Front extends Plot {
  paint(canvas, passes) {
    canvas.beginPath();
    for (const trial of this.model.front) if (passes(trial)) canvas.lineTo(...this.places[trial]);
    canvas.strokeStyle = this.colors.best;
    canvas.lineWidth = 1.5;
    canvas.stroke();
    super.paint(canvas, passes);
  }
}

/** Base of charts with a line for each trial: `lines` has x and y of each vertex by trial. */
class Lines extends Plot {
  /** Paint the lines of each level as one path: a path for each trial would take ten times as long. */
  paint(canvas, passes) {
    const { ramp, none, best } = this.colors;
    const count = this.lines.reduce((sum, line) => sum + (line ? 1 : 0), 0);
    canvas.lineJoin = "round";
    for (let level = -1; level < LEVELS; level++) {
      const path = new Path2D();
      let drawn = 0;
      for (const trial of this.model.byLevel[level + 1]) {
        if (!this.lines[trial] || !passes(trial)) continue;
        this.trace(path, this.lines[trial]);
        drawn++;
      }
      if (!drawn) continue;
      canvas.strokeStyle = level < 0 ? none : ramp[level];
      canvas.globalAlpha = count > 1000 ? 0.55 : 0.85;
      canvas.lineWidth = count > 1000 ? 1 : count > 100 ? 1.2 : 1.6;
      canvas.stroke(path);
    }
    canvas.globalAlpha = 1;
    const winner = this.model.best;
    if (winner !== null && this.lines[winner] && passes(winner)) {
      const path = new Path2D();
      this.trace(path, this.lines[winner]);
      canvas.strokeStyle = best;
      canvas.lineWidth = 2.5;
      canvas.stroke(path);
    }
  }

  trace(path, line) {
    let up = true;
    for (let at = 0; at < line.length; at += 2) {
      // A line ends where the steps of a curve begin again, as with folds.
      if (line[at] <= line[at - 2]) up = true;
      if (line[at + 1] !== line[at + 1]) up = true;
      else if (up) (path.moveTo(line[at], line[at + 1]), (up = false));
      else path.lineTo(line[at], line[at + 1]);
    }
  }

  point(trial) {
    const line = this.lines[trial];
    if (!line) return;
    let d = "";
    for (let at = 0; at < line.length; at += 2) {
      if (line[at + 1] === line[at + 1]) d += `${d ? "L" : "M"}${line[at].toFixed(1)} ${line[at + 1].toFixed(1)}`;
    }
    this.pointer.append(svg("path", { class: "hover", d }));
  }

  nearest(x, y) {
    let found = -1;
    let least = NEAR;
    this.lines.forEach((line, trial) => {
      if (!line || !this.mayPoint(trial)) return;
      const distance = distanceTo(line, x, y);
      if (distance < least) [found, least] = [trial, distance];
    });
    return found;
  }
}

/** Return how far above or below a line a point is; vertices are in the order of x. */
function distanceTo(line, x, y) {
  for (let at = 0; at + 3 < line.length; at += 2) {
    if (x < line[at] || x > line[at + 2]) continue;
    const part = (x - line[at]) / (line[at + 2] - line[at] || 1);
    return Math.abs(line[at + 1] + part * (line[at + 3] - line[at + 1]) - y);
  }
  return Infinity;
}

/** Learning curves. The curve of a trial that continues another starts where that one ends. */
class Curves extends Lines {
  layOut() {
    const { left, right, top, bottom } = this.area;
    const { curves, parents } = this.model;
    let [first, last, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [, steps, values] of curves) {
      [first, last] = [Math.min(first, steps[0]), Math.max(last, steps[steps.length - 1])];
      for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
    const objective = this.column("objective");
    if (objective.domain) [low, high] = [Math.max(low, objective.domain[0]), Math.min(high, objective.domain[1])];
    this.scaleX = numbers(first, last, false, left, right);
    this.scaleY = numbers(low, high, objective.log === true && low > 0, bottom, top);
    this.drawAxes("step");
    this.lines = new Array(objective.values.length).fill(null);
    for (const [trial, steps, values] of curves) {
      const line = new Float32Array(2 * steps.length);
      for (let at = 0; at < steps.length; at++) {
        line[2 * at] = this.scaleX.at(steps[at]);
        line[2 * at + 1] = this.scaleY.at(values[at]);
      }
      this.lines[trial] = line;
    }
    parents.forEach((parent, trial) => {
      const [line, before] = [this.lines[trial], parent === null ? null : this.lines[parent]];
      if (line && before && before[before.length - 2] <= line[0]) {
        this.lines[trial] = Float32Array.of(before[before.length - 2], before[before.length - 1], ...line);
      }
    });
  }

  tester(left, right, top, bottom) {
    return (trial) => {
      const line = this.lines[trial];
      if (!line) return false;
      for (let at = 0; at < line.length; at += 2) {
        const [x, y] = [line[at], line[at + 1]];
        if (x >= left && x <= right && y >= top && y <= bottom) return true;
      }
      return false;
    };
  }
}

/** Parallel coordinates: a vertical axis for each column, each with its own brush. */
class Parallel extends Lines {
  ranges = new Map();

  layOut() {
    const { top, right } = this.area;
    const keys = this.spec.x;
    const bottom = this.height - 16;
    const start = top + 26;
    this.stops = keys.map((_, place) => 60 + (place * (right - 106)) / Math.max(1, keys.length - 1));
    this.scales = keys.map((key) => scaleOf(this.column(key), bottom, start));
    keys.forEach((key, place) => {
      const x = this.stops[place];
      this.axes.append(svg("path", { class: "axis", d: `M${x} ${start}V${bottom}` }));
      const title = this.column(key).title;
      const anchor = place === 0 ? "start" : place === keys.length - 1 ? "end" : "middle";
      const shift = place === 0 ? -44 : place === keys.length - 1 ? 46 : 0;
      const room = Math.max(8, Math.floor((right - 60) / keys.length / 7));
      const text = title.length > room ? `${title.slice(0, room - 1)}…` : title;
      this.axes.append(svg("text", { class: "title", x: x + shift, y: top + 6, "text-anchor": anchor }, text));
      // Labels lie beside each axis, where the colour of the card hides the lines; those of the last lie where no line is.
      const isLast = place > 0 && place === keys.length - 1;
      for (const [y, label] of this.scales[place].ticks(6)) {
        if (isLast) {
          this.labels.append(svg("text", { x: x + 8, y: y + 4 }, label));
          continue;
        }
        const text = svg("text", { x: x - 8, y: y + 4, "text-anchor": "end" }, label);
        this.labels.append(text);
        const width = text.getComputedTextLength() + 6;
        text.before(svg("rect", { x: x - 5 - width, y: y - 8, width, height: 16, fill: this.colors.card }));
      }
    });
    const columns = keys.map((key) => this.column(key).values);
    this.lines = columns[0].map((_, trial) => {
      const line = new Float32Array(2 * keys.length);
      keys.forEach((_, place) => {
        line[2 * place] = this.stops[place];
        line[2 * place + 1] = this.scales[place].at(columns[place][trial]);
      });
      return line;
    });
  }

  brush(from, to) {
    if (from === null) {
      if (to) this.ranges.delete(this.axisAt(to.x));
      else this.ranges.clear();
    } else this.ranges.set(this.axisAt(from.x), [Math.min(from.y, to.y), Math.max(from.y, to.y)]);
    this.brushes.replaceChildren();
    this.hasBrush = this.ranges.size > 0;
    for (const [axis, [top, bottom]] of this.ranges) this.outline(this.stops[axis] - 9, top, this.stops[axis] + 9, bottom);
    const ranges = [...this.ranges];
    const inside = (trial) =>
      ranges.every(([axis, [top, bottom]]) => {
        const y = this.lines[trial][2 * axis + 1];
        return y >= top && y <= bottom;
      });
    this.selection.set(this.spec.name, ranges.length ? inside : null);
  }

  axisAt(x) {
    return this.stops.reduce((near, stop, place) => (Math.abs(stop - x) < Math.abs(this.stops[near] - x) ? place : near), 0);
  }

  forget() {
    this.ranges.clear();
    super.forget();
  }
}

/** A histogram: how many trials are in each range, selected ones in front. */
class Bars extends Plot {
  layOut() {
    const { left, right, top, bottom } = this.area;
    const values = this.column(this.x).values;
    this.scaleX = scaleOf(this.column(this.x), left, right);
    const bins = Math.min(40, Math.max(8, Math.ceil(Math.sqrt(values.length))));
    this.step = (right - left) / bins;
    this.bins = values.map((value) => {
      const place = this.scaleX.at(value);
      return place === place ? Math.min(bins - 1, Math.floor((place - left) / this.step)) : -1;
    });
    const counts = this.count(() => true);
    const most = Math.max(1, ...counts);
    const at = (count) => bottom - (count / most) * (bottom - top);
    const whole = linearTicks(0, most, 5).filter(Number.isInteger);
    this.scaleY = { at, ticks: () => whole.map((count) => [at(count), String(count)]) };
    this.drawAxes(this.column(this.x).title);
  }

  count(passes) {
    const counts = [];
    this.bins.forEach((bin, trial) => {
      if (bin >= 0 && passes(trial)) counts[bin] = (counts[bin] ?? 0) + 1;
    });
    return Array.from(counts, (count) => count ?? 0);
  }

  paint(canvas, passes) {
    canvas.fillStyle = this.colors.ramp[8];
    this.count(passes).forEach((count, bin) => {
      if (!count) return;
      const y = this.scaleY.at(count);
      canvas.fillRect(this.area.left + bin * this.step + 1, y, this.step - 2, this.scaleY.at(0) - y);
    });
  }

  point(trial) {
    const bin = this.bins[trial];
    if (bin < 0) return;
    const x = this.area.left + bin * this.step;
    this.pointer.append(svg("rect", { class: "hover", x, y: this.area.bottom - 4, width: this.step, height: 4 }));
  }

  nearest() {
    return -1;
  }

  tester(left, right) {
    const [first, last] = [Math.floor((left - this.area.left) / this.step), Math.floor((right - this.area.left) / this.step)];
    return (trial) => this.bins[trial] >= 0 && this.bins[trial] >= first && this.bins[trial] <= last;
  }
}

const MARKS = { point: Plot, pair: Pair, step: Steps, front: Front, line: Curves, parallel: Parallel, bar: Bars };
