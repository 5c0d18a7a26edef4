// The page of a trial, which the address names after `#`: its values, curve, environment and commits.
const columns = new Map(DATA.columns.map((column) => [column.key, column]));
const objective = columns.get("objective");
const sign = DATA.goal === "maximize" ? -1 : 1;
const ranking = DATA.trials
  .map((_, trial) => trial)
  .filter((trial) => objective.values[trial] !== null && DATA.eligible[trial])
  .sort((one, other) => sign * (objective.values[one] - objective.values[other]) || one - other);
const MOST_CURVES = 400;
let current = 0;

$("ids").append(...DATA.trials.map((id) => el("option", { value: id })));
window.addEventListener("hashchange", showNamed);
window.addEventListener("resize", onceAFrame(() => drawCurve(current)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCurve(current));
$("choice").addEventListener("change", () => {
  if (DATA.trials.includes($("choice").value)) location.hash = $("choice").value;
});
$("better").addEventListener("click", () => step(-1));
$("worse").addEventListener("click", () => step(1));
$("copy").addEventListener("click", () => copy($("command").textContent, $("copied")));
showNamed();

function showNamed() {
  const named = DATA.trials.indexOf(decodeURIComponent(location.hash.slice(1)));
  show(named >= 0 ? named : (DATA.best ?? ranking[0] ?? 0));
}

function step(by) {
  const place = ranking.indexOf(current) + by;
  if (ranking[place] !== undefined) location.hash = DATA.trials[ranking[place]];
}

function show(trial) {
  current = trial;
  const id = DATA.trials[trial];
  const details = DATA.details[trial];
  const rank = ranking.indexOf(trial);
  document.title = `${id} · ${DATA.sweep} · sweepledger`;
  $("trial").textContent = id;
  $("choice").value = id;
  $("better").disabled = rank <= 0;
  $("worse").disabled = rank < 0 || rank >= ranking.length - 1;
  const other = DATA.best !== null && DATA.best !== trial ? DATA.trials[DATA.best] : "";
  $("compare").href = `../../compare.html#a=${DATA.sweep}/${id}&b=${DATA.sweep}${other && `/${other}`}`;
  $("status").replaceChildren(...statusOf(trial, details, rank));
  $("values").replaceChildren(...parameterRows(trial));
  $("metrics").replaceChildren(...metricRows(trial));
  showMessage(details);
  $("run").replaceChildren(...pairs(trial, details));
  const reported = Object.entries(details.environment ?? {});
  $("environment-part").hidden = !reported.length;
  $("environment").replaceChildren(...reported.map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))));
  $("commits").replaceChildren(...commitItems(trial));
  showCode(trial);
  showArtifacts(details);
  $("command").textContent = `sweep show ${id}\nsweep show ${id} --reproduce`;
  drawCurve(trial);
  drawBeside(details.curves ?? {});
}

function statusOf(trial, details, rank) {
  const status = shown(columns.get("status"), trial);
  const parts = [el("span", { className: `status-${status}` }, el("span", {}, status))];
  if (details.reason) parts.push(` ${details.reason}`);
  if (DATA.laptop.includes(shown(columns.get("batch"), trial))) parts.push(" ", el("span", { className: "label" }, LAPTOP));
  if (rank >= 0) parts.push(` · ${DATA.metric} `, el("strong", {}, shown(objective, trial)), `, rank ${rank + 1} of ${ranking.length}`);
  return parts;
}

function parameterRows(trial) {
  return DATA.columns
    .filter((column) => column.key.startsWith("params."))
    .map((column) => {
      const [mine, best] = [shown(column, trial), DATA.best === null ? "" : shown(column, DATA.best)];
      return el("tr", { className: mine === best ? "same-value" : "" }, el("th", { scope: "row" }, column.title), el("td", { className: "differs" }, mine || "none"), el("td", {}, best || "none"));
    });
}

function metricRows(trial) {
  return DATA.columns
    .filter((column) => column.key === "objective" || column.key.startsWith("metrics.") || column.key === "seconds")
    .map((column) => {
      const known = column.values.filter((value) => value !== null).length;
      const place = column.key === "objective" ? ranking.indexOf(trial) : -1;
      return el("tr", {}, el("th", { scope: "row" }, column.title), el("td", {}, shown(column, trial) || "none"), el("td", {}, place >= 0 ? `${place + 1} of ${known}` : ""));
    });
}

function versionOf(trial) {
  const batch = shown(columns.get("batch"), trial);
  return DATA.versions.findIndex((version) => version.batches.includes(batch));
}

function pairs(trial, details) {
  const version = DATA.versions[versionOf(trial)] ?? {};
  const listed = [
    ["batch", shown(columns.get("batch"), trial)],
    ...PROGRAM.map((name) => [name, version[name]]),
    ["row", String(details.index)],
    ["attempts", String(details.attempts)],
    ["parent trial", details.parent],
    ["seed", details.seed === undefined ? "" : String(details.seed)],
    ["started", details.started],
    ["finished", details.finished],
    ["ran", details.ran],
    ["node", details.node],
    ["software", details.software],
    ["disruptions", details.disruptions && String(details.disruptions)],
  ];
  return listed.filter(([, text]) => text).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]);
}

function commitItems(trial) {
  const batch = shown(columns.get("batch"), trial);
  const { requested = [], generated = [], recorded = [] } = DATA.commits;
  const recording = DATA.recorded[batch];
  const own = generated.filter(([, , , text]) => text.startsWith(`${batch}:`)).slice(0, 1);
  const before = own.length ? requested.filter(([, , day]) => day <= own[0][2]).slice(-1) : requested.slice(-1);
  const after = recording ? recorded.filter(([id]) => id === recording).slice(0, 1) : recorded.slice(-1);
  const labelled = [["spec", before], ["generated", own], ["recorded", after]];
  return labelled.flatMap(([what, commits]) =>
    commits.map(([id, author, day, text]) =>
      el("li", {}, el("span", { className: "kind" }, what), " ", el("code", { className: "commit", title: id }, id.slice(0, 8)), ` ${day} ${author}: ${text}`),
    ),
  );
}

/** Show what the code of a trial changed of the version before, and what the next version changed of it. */
function showCode(trial) {
  const version = versionOf(trial);
  const neighbours = [
    ["Changed since the version before", DATA.versions[version]],
    ["Changed in the next version", DATA.versions[version + 1]],
  ].filter(([, other]) => other?.files);
  $("code-part").hidden = !neighbours.length;
  $("code").replaceChildren(...neighbours.flatMap(([title, { files, patch, batches }]) => codeChange(title, files, patch, batches)));
}

function codeChange(title, files, patch, batches) {
  const counted = files.map(([path, added, removed]) => el("li", {}, path, added === null ? "" : ` +${added} −${removed}`));
  const parts = [el("h3", {}, `${title} (${batches[0]})`), el("ul", { className: "plain" }, ...counted)];
  if (!patch) return parts;
  const kinds = { "+": "added", "-": "removed", "@": "place" };
  const lines = patch.split("\n").map((line) => el("span", { className: kinds[line[0]] ?? "same" }, `${line}\n`));
  return [...parts, el("details", { className: "diff" }, el("summary", {}, "Lines"), el("pre", { tabIndex: 0 }, ...lines))];
}

function showMessage(details) {
  $("message-part").hidden = !details.message;
  $("message").textContent = details.message ?? "";
}

function showArtifacts(details) {
  const artifacts = details.artifacts ?? [];
  $("artifact-part").hidden = !artifacts.length;
  $("artifacts").replaceChildren(
    ...artifacts.map((each) => el("tr", {}, el("td", {}, each.path), el("td", {}, each.bytes.toLocaleString("en")), el("td", {}, el("code", {}, each.sha256)))),
  );
}

/** Draw the curves of the other metrics of a trial, each for itself. */
function drawBeside(curves) {
  $("beside-part").hidden = !Object.keys(curves).length;
  $("beside").replaceChildren(
    ...Object.entries(curves).map(([name, [steps, values]]) => {
      const across = scaleOf({ values: steps }, 60, 310);
      const up = scaleOf({ values }, 116, 10);
      const label = `${name} over the steps, from ${values[0]} to ${values.at(-1)}`;
      const frame = svg("svg", { viewBox: "0 0 320 140", role: "img", "aria-label": label });
      drawStepAxes(frame, [across, 4], [up, 3], { left: 60, right: 310, below: 134 });
      frame.append(svg("path", { class: "line", d: curvePath(steps, values, across, up) }));
      return el("figure", {}, el("figcaption", {}, name), frame);
    }),
  );
}

/** Draw the curve of a trial over those of the others. */
function drawCurve(trial) {
  const own = DATA.curves.find(([place]) => place === trial);
  $("curve-part").hidden = !own;
  if (!own) return;
  const stride = Math.max(1, Math.ceil(DATA.curves.length / MOST_CURVES));
  const { best, none } = palette();
  const others = DATA.curves.filter((curve, place) => curve !== own && place % stride === 0);
  const curves = [...others, own].map((curve) => ({
    steps: curve[1],
    values: curve[2],
    style: curve === own ? { stroke: best, "stroke-width": 2.5 } : { stroke: none, "stroke-opacity": 0.5 },
  }));
  drawCurves($("curve"), curves, { log: objective.log, domain: objective.domain });
}
