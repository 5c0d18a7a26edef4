// What runs now: the page asks the server of this machine every few seconds, and draws what has changed.
const PAUSE = 2000;
const opened = new Set();
let last = "";
let commit = "";
let paused = false;

$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
});
window.addEventListener("resize", onceAFrame(() => last && show(JSON.parse(last))));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => last && show(JSON.parse(last)));
follow();

async function follow() {
  if (!paused) await ask();
  setTimeout(follow, PAUSE);
}

async function ask() {
  try {
    const response = await fetch("running.json");
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    tell("");
    if (text === last) return;
    last = text;
    show(JSON.parse(text));
  } catch (error) {
    tell(`Nothing new is known: ${error.message}`);
  }
}

function tell(problem) {
  $("problem").hidden = !problem;
  if ($("problem").textContent !== problem) $("problem").textContent = problem;
}

function show(data) {
  if (commit && data.commit !== commit) $("news").textContent = `The branch has moved to ${data.commit.slice(0, 8)}.`;
  commit = data.commit;
  const focused = document.activeElement?.dataset?.trial;
  $("batches").replaceChildren(...(data.batches.length ? data.batches.map(section) : [el("p", {}, "No batch is active.")]));
  for (const box of document.querySelectorAll(".plot")) draw(box, data.batches[Number(box.dataset.place)]);
  if (focused) document.querySelector(`[data-trial="${CSS.escape(focused)}"]`)?.focus();
}

function section(batch, place) {
  const title = el("h2", { id: `batch-${place}` }, link(`sweeps/${batch.sweep}/index.html`, batch.sweep), ` ${batch.batch}`);
  const counts = Object.entries(batch.counts).map(([state, count]) => el("li", {}, el("span", {}, state), ` ${count}`));
  const parts = [title, el("ul", { className: "counts" }, ...counts)];
  if (batch.trials.some((trial) => trial.steps.length > 1)) {
    const label = `${batch.metric} over the steps of ${batch.trials.length} trials, ${batch.goal === "maximize" ? "higher" : "lower"} is better; the table has the last values`;
    const box = el("div", { className: "plot tall", role: "img", "aria-label": label });
    box.dataset.place = place;
    parts.push(box);
  }
  if (batch.trials.length) parts.push(table(batch, place));
  return el("section", { "aria-labelledby": `batch-${place}` }, ...parts);
}

function table(batch, place) {
  const titles = ["trial", "state", "step", batch.metric, "last output"].map((text) => el("th", { scope: "col" }, text));
  const rows = batch.trials.map((trial) => {
    const end = trial.steps.length - 1;
    const cells = [trial.state, end < 0 ? "" : String(trial.steps[end]), end < 0 ? "" : short(trial.values[end])];
    return el("tr", {}, el("th", { scope: "row" }, trial.trial), ...cells.map((text) => el("td", {}, text)), el("td", {}, ...output(trial)));
  });
  const content = el("table", {}, el("thead", {}, el("tr", {}, ...titles)), el("tbody", {}, ...rows));
  return el("div", { className: "scroll", tabIndex: 0, role: "group", "aria-labelledby": `batch-${place}` }, content);
}

function output(trial) {
  if (!trial.output) return [];
  const summary = el("summary", {}, trial.output.trimEnd().split("\n").at(-1).slice(0, 80) || "output");
  summary.dataset.trial = trial.trial;
  const details = el("details", { open: opened.has(trial.trial) }, summary, el("pre", { tabIndex: 0 }, trial.output));
  details.addEventListener("toggle", () => (details.open ? opened.add(trial.trial) : opened.delete(trial.trial)));
  return [details];
}

/** Draw the curves of a batch, the best by its last value above the others. */
function draw(box, batch) {
  const curves = batch.trials.filter((trial) => trial.steps.length);
  const sign = batch.goal === "maximize" ? 1 : -1;
  curves.sort((one, other) => sign * (one.values.at(-1) - other.values.at(-1)));
  const { best, ramp } = palette();
  const style = (rank) =>
    rank === curves.length - 1
      ? { stroke: best, "stroke-width": 2.5 }
      : { stroke: ramp[Math.floor((rank / curves.length) * LEVELS)], "stroke-width": 1.4 };
  drawCurves(box, curves.map(({ steps, values }, rank) => ({ steps, values, style: style(rank) })));
}
