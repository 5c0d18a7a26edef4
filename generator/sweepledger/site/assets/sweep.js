// The page of a sweep: charts, selection and table together.
const TIP_VALUES = 8;
const REST = 80;

if (DATA.trials) showTrials();

function showTrials() {
  const columns = new Map(DATA.columns.map((column) => [column.key, column]));
  const levels = levelsOf(columns.get("objective"), DATA.goal);
  const byLevel = Array.from({ length: LEVELS + 1 }, () => []);
  levels.forEach((level, trial) => byLevel[level + 1].push(trial));
  const tip = el("div", { className: "tip", hidden: true });
  document.body.append(tip);
  const model = {
    ...DATA,
    columns,
    levels,
    byLevel,
    order: byLevel.slice(1).flat(),
    better: DATA.goal === "maximize" ? (a, b) => a > b : (a, b) => a < b,
    tip: (trial, event) => showTip(tip, model, trial, event),
    open: (trial) => location.assign(`trials.html#${model.trials[trial]}`),
  };
  const selection = new Selection(model.trials.length);
  const specs = new Map(model.charts.map((spec) => [spec.name, spec]));
  const plots = [...document.querySelectorAll("[data-chart]")].map((figure) => {
    const spec = specs.get(figure.dataset.chart);
    return new MARKS[spec.mark](figure, spec, model, selection);
  });
  const table = new Table(model, selection);
  drawInView(plots);
  let waiting = 0;
  // Brushes and the filter call this once a frame already.
  const redraw = () => {
    for (const plot of plots) {
      if (plot.inView && plot.isDrawn) plot.drawSelection();
      plot.isStale = !plot.inView;
    }
    tell(selection);
    // The table follows when the brush rests: sorting thousands of rows would hold it up.
    clearTimeout(waiting);
    waiting = setTimeout(() => table.select(), REST);
  };
  selection.listen((what) => {
    if (what === "clear") for (const plot of plots) plot.forget();
    if (what === "hover") for (const plot of plots) plot.isDrawn && plot.drawPointer();
    else redraw();
  });
  const clear = () => {
    $("query").value = "";
    selection.clear();
  };
  $("clear").addEventListener("click", clear);
  document.addEventListener("keydown", (event) => event.key === "Escape" && selection.isActive && clear());
  window.addEventListener("resize", onceAFrame(() => plots.forEach((plot) => plot.isDrawn && plot.draw())));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.isDrawn && plot.draw()));
  tell(selection);
}

/** Draw charts when they come into view, one after the other: the first is there at once. */
function drawInView(plots) {
  const byBox = new Map(plots.map((plot) => [plot.box, plot]));
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const plot = byBox.get(entry.target);
        plot.inView = entry.isIntersecting;
        if (!plot.inView) continue;
        if (!plot.isDrawn) setTimeout(() => drawFirst(plot));
        else if (plot.isStale) plot.drawSelection();
        plot.isStale = false;
      }
    },
    { rootMargin: "50px" },
  );
  for (const plot of plots) observer.observe(plot.box);
  // Paper has no view to scroll.
  window.addEventListener("beforeprint", () => plots.forEach((plot) => plot.isDrawn || plot.draw()));
}

function drawFirst(plot) {
  if (plot.isDrawn) return;
  plot.draw();
  performance.mark("chart");
}

function tell(selection) {
  const all = selection.count.toLocaleString("en");
  $("selected").textContent = selection.isActive ? `${selection.size.toLocaleString("en")} of ${all} trials selected` : `${all} trials`;
  $("clear").hidden = !selection.isActive;
}


function showTip(tip, model, trial, event) {
  tip.hidden = trial < 0;
  if (trial < 0) return;
  const columns = [...model.columns.values()].filter((column) => column.key.startsWith("params.")).slice(0, TIP_VALUES);
  const objective = shown(model.columns.get("objective"), trial) || shown(model.columns.get("status"), trial);
  tip.replaceChildren(
    el("b", {}, `${model.metric} ${objective}`),
    ...columns.filter((column) => shown(column, trial)).map((column) => el("span", {}, `${column.title} ${shown(column, trial)}`)),
    el("span", {}, model.trials[trial]),
  );
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8);
  tip.style.transform = `translate(${left}px, ${top}px)`;
}
