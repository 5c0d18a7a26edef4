// The page that compares: two sweeps, or two trials, which the address names as `#a=…&b=…`.
const sweeps = new Map(DATA.map((data) => [data.sweep, data]));
const PROGRAM = ["image", "code", "data", "command"];
const MOST_PAIRS = 200;

$("names").append(...[...sweeps.keys()].map((name) => el("option", { value: name })));
for (const side of ["a", "b"]) {
  $(side).addEventListener("change", () => {
    location.hash = `a=${encodeURIComponent($("a").value)}&b=${encodeURIComponent($("b").value)}`;
  });
}
$("choice").addEventListener("submit", (event) => event.preventDefault());
$("swap").addEventListener("click", () => {
  location.hash = `a=${encodeURIComponent($("b").value)}&b=${encodeURIComponent($("a").value)}`;
});
$("differing").addEventListener("change", compareNamed);
window.addEventListener("hashchange", compareNamed);
compareNamed();

function compareNamed() {
  const chosen = new URLSearchParams(location.hash.slice(1));
  const names = ["a", "b"].map((side) => chosen.get(side) ?? "");
  [$("a").value, $("b").value] = names;
  const sides = names.map(find);
  const unknown = names.filter((name, place) => name && !sides[place]);
  $("problem").hidden = !unknown.length;
  $("problem").textContent = unknown.length ? `No sweep or trial here is called ${unknown.join(" or ")}.` : "";
  const [a, b] = sides;
  $("comparison").tBodies[0].replaceChildren();
  $("pairs-part").hidden = true;
  if (!a || !b) {
    $("summary").textContent = "Choose two sides.";
    return;
  }
  [$("head-a").textContent, $("head-b").textContent] = names;
  showRows(a, b);
  $("summary").textContent = [verdict(a, b), ...[a, b].map(laptopNote)].filter(Boolean).join(" ");
  if (a.trial === null && b.trial === null) showPairs(a, b);
}

/** Return the sweep and the trial that a name means; a sweep alone has no trial. */
function find(name) {
  const [sweep, id] = name.split("/");
  const data = sweeps.get(sweep);
  if (!data?.trials) return null;
  if (id === undefined) return { name, data, trial: null };
  const trial = data.trials.indexOf(id);
  return trial < 0 ? null : { name, data, trial };
}

/** Return the properties of a side by name: text, and a number where it is one. */
function properties({ data, trial }) {
  const listed = new Map();
  const add = (name, column, place) => listed.set(name, [shown(column, place), column.categories ? null : column.values[place]]);
  const place = trial ?? data.best;
  if (trial === null) {
    for (const name of ["metric", "best", "trials"]) listed.set(name, [data.program[name], null]);
  }
  if (place !== null) {
    for (const column of data.columns) {
      if (column.key === "number" || column.key === "hours") continue;
      const kind = column.key.startsWith("params.") ? "value: " : column.key.startsWith("metrics.") ? "metric: " : "";
      add(column.key === "objective" ? `objective: ${column.title}` : kind + column.title, column, place);
    }
  }
  for (const name of PROGRAM) listed.set(name, [data.program[name], null]);
  return listed;
}

function showRows(a, b) {
  const [first, second] = [properties(a), properties(b)];
  const rows = [...new Set([...first.keys(), ...second.keys()])].map((name) => {
    const [[text, number], [otherText, otherNumber]] = [first.get(name) ?? ["", null], second.get(name) ?? ["", null]];
    const isSame = text === otherText;
    const difference = typeof number === "number" && typeof otherNumber === "number" && !isSame ? short(otherNumber - number) : "";
    const cells = [text, otherText].map((each) => el("td", { className: isSame ? "" : "differs" }, each || "none"));
    const row = el("tr", { className: isSame ? "same-value" : "" }, el("th", { scope: "row" }, name), ...cells, el("td", { className: "number" }, difference));
    row.hidden = isSame && $("differing").checked;
    return row;
  });
  $("comparison").tBodies[0].replaceChildren(...rows);
}

/** Return that a side has results made on a laptop; empty if it has none. */
function laptopNote({ name, data, trial }) {
  const batches = trial === null ? data.laptop : data.laptop.filter((batch) => batch === shown(batchOf(data), trial));
  return batches.length ? `${name}: ${LAPTOP}: ${batches.join(", ")}.` : "";
}

function batchOf(data) {
  return data.columns.find((column) => column.key === "batch");
}

/** Return why the objectives of two sides must not be compared; empty if they may. */
function refusal(a, b) {
  if (a.data.metric !== b.data.metric || a.data.goal !== b.data.goal) return "They have different metrics";
  return a.data.program.data === b.data.program.data ? "" : "They ran on different data";
}

function verdict(a, b) {
  const refused = refusal(a, b);
  if (refused) return `${refused}, so their objectives are not compared.`;
  const values = [a, b].map(({ data, trial }) => {
    const place = trial ?? data.best;
    return place === null ? null : objectiveOf(data).values[place];
  });
  if (values.includes(null)) return "At least one of them has no result to compare.";
  const difference = values[1] - values[0];
  if (difference === 0) return `Both reach the same ${a.data.metric}.`;
  const isBetter = (a.data.goal === "maximize") === difference > 0;
  return `B is ${isBetter ? "better" : "worse"} by ${short(Math.abs(difference))} in ${a.data.metric}. Whether that is more than seed noise, only replicates can tell.`;
}

function objectiveOf(data) {
  return data.columns.find((column) => column.key === "objective");
}

/** Return the trials of a sweep that are ranked, by their configuration. */
function byConfiguration(data) {
  const parameters = data.columns.filter((column) => column.key.startsWith("params."));
  const replicate = data.columns.find((column) => column.key === "replicate");
  const trials = new Map();
  data.trials.forEach((_, trial) => {
    if (!data.eligible[trial]) return;
    const values = parameters.filter((column) => column.values[trial] !== null).map((column) => `${column.title} ${shown(column, trial)}`);
    if (replicate?.values[trial]) values.push(`replicate ${replicate.values[trial]}`);
    trials.set(values.sort().join(", "), trial);
  });
  return trials;
}

function showPairs(a, b) {
  const [first, second] = [byConfiguration(a.data), byConfiguration(b.data)];
  const shared = [...first.keys()].filter((key) => second.has(key));
  $("pairs-part").hidden = false;
  const refused = refusal(a, b);
  $("pairs-note").textContent = `${shared.length} configurations are in both; ${first.size - shared.length} only in A, ${second.size - shared.length} only in B.${refused && shared.length ? ` ${refused}: differences are not shown.` : ""}`;
  $("pairs").parentElement.hidden = !shared.length;
  const titles = ["configuration", "A", "B", "B less A"].map((title) => el("th", { scope: "col" }, title));
  $("pairs").tHead.replaceChildren(el("tr", {}, ...titles));
  const rows = shared.slice(0, MOST_PAIRS).map((key) => {
    const values = [objectiveOf(a.data).values[first.get(key)], objectiveOf(b.data).values[second.get(key)]];
    const difference = !refused && !values.includes(null) ? short(values[1] - values[0]) : "";
    return el("tr", {}, el("th", { scope: "row" }, key), ...values.map((value) => el("td", {}, value === null ? "none" : short(value))), el("td", {}, difference));
  });
  $("pairs").tBodies[0].replaceChildren(...rows);
}
