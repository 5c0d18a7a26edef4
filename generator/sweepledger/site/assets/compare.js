// The page that compares: two sweeps, a sweep at two results commits, or two trials, named as `#a=…&b=…`.
const sweeps = new Map(DATA.map((data) => [data.sweep, data]));
const SHORT = 12;
const MOST_PAIRS = 200;

$("names").append(...[...sweeps.values()].flatMap(namesOf).map((name) => el("option", { value: name })));
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
$("copy").addEventListener("click", () => copy($("command").textContent, $("copied")));
compareNamed();

/** Return the names of a sweep: its own, and that at each results commit if it has several. */
function namesOf({ sweep, results = [] }) {
  return [sweep, ...(results.length > 1 ? results.map(([commit]) => `${sweep}@${commit.slice(0, SHORT)}`) : [])];
}

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
  for (const id of ["pairs-part", "explain-part", "why-part"]) $(id).hidden = true;
  $("noise").textContent = "";
  if (!a || !b) {
    $("summary").textContent = "Choose two sides.";
    return;
  }
  [$("head-a").textContent, $("head-b").textContent] = names;
  showRows(a, b);
  $("summary").textContent = [verdict(a, b), ...[a, b].map(laptopNote)].filter(Boolean).join(" ");
  const isRefused = refusal(a, b) !== "";
  if (a.trial === null && b.trial === null) {
    const shared = sharedConfigurations(a, b);
    showPairs(a, b, shared);
    if (!isRefused && a.name !== b.name) {
      $("noise").textContent = pairedNoise(a, shared);
      showExplanation(a, b);
    }
  } else if (!isRefused) $("noise").textContent = seedNoise(a, b);
}

/** Return the side that a name means: a sweep, a sweep at a results commit, or a trial. */
function find(name) {
  const [reference, id] = name.split("/");
  const [sweep, revision] = reference.split("@");
  const data = sweeps.get(sweep);
  if (!data?.trials) return null;
  if (id !== undefined) {
    const trial = data.trials.indexOf(id);
    return trial < 0 ? null : { name, data, trial, best: trial, ranked: [trial], commit: null };
  }
  if (revision === undefined) {
    const ranked = data.trials.map((_, trial) => trial).filter((trial) => data.eligible[trial] && objectiveOf(data).values[trial] !== null);
    const last = data.results.at(-1);
    return { name, data, trial: null, best: data.best, ranked, commit: last ? last[0] : null };
  }
  const until = revision.length < 4 ? -1 : data.results.findIndex(([commit]) => commit.startsWith(revision));
  return until < 0 ? null : sideAt(name, data, until);
}

/** Return a sweep after one of its results commits: the trials of the program that was the newest then. */
function sideAt(name, data, until) {
  const known = new Set(data.results.slice(0, until + 1).flatMap(([, , batches]) => batches));
  const version = data.versions.findLast(({ batches }) => batches.some((batch) => known.has(batch)));
  const batch = columnOf(data, "batch");
  const objective = objectiveOf(data).values;
  const ranked = data.trials
    .map((_, trial) => trial)
    .filter((trial) => objective[trial] !== null && known.has(shown(batch, trial)) && version.batches.includes(shown(batch, trial)));
  const side = { name, data, trial: null, best: null, ranked, commit: data.results[until][0] };
  const sign = data.goal === "maximize" ? -1 : 1;
  const means = [...byConfiguration(side).values()].map(({ trials, values }) => [mean(values), trials[0]]);
  means.sort(([one], [other]) => sign * (one - other));
  return { ...side, best: means.length ? means[0][1] : null };
}

function columnOf(data, key) {
  return data.columns.find((column) => column.key === key);
}

function objectiveOf(data) {
  return columnOf(data, "objective");
}

/** Return what a side ran: of a sweep, what its best trial ran. */
function versionOf({ data, best }) {
  const batch = best === null ? "" : shown(columnOf(data, "batch"), best);
  return data.versions.findLast(({ batches }) => batches.includes(batch)) ?? data.versions.at(-1);
}

/** Return the properties of a side by name: text, and a number where it is one. */
function properties(side) {
  const { data, trial, best } = side;
  const listed = new Map();
  if (trial === null) {
    listed.set("metric", [`${data.metric}, ${data.goal}`, null]);
    // Of a sweep as it is now, with the interval that its own page shows.
    if (!side.name.includes("@")) listed.set("best", [data.program.best, null]);
    listed.set("ranked trials", [String(side.ranked.length), side.ranked.length]);
  }
  if (best !== null) {
    for (const column of data.columns) {
      if (column.key === "number" || RUNNING_SUMS.has(column.key)) continue;
      const kind = column.key.startsWith("params.") ? "value: " : column.key.startsWith("metrics.") ? "metric: " : "";
      const name = column.key === "objective" ? `objective: ${column.title}` : kind + column.title;
      listed.set(name, [shown(column, best), column.categories ? null : column.values[best]]);
    }
  }
  const version = versionOf(side);
  for (const name of PROGRAM) listed.set(name, [version[name] ?? "", null]);
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
  const files = changedFiles(a, b);
  if (files.length) rows.push(el("tr", {}, el("th", { scope: "row" }, "changed files of the code"), el("td", { colSpan: 3 }, files.join(", "))));
  $("comparison").tBodies[0].replaceChildren(...rows);
}

/** Return that a side has results made on a laptop; empty if it has none. */
function laptopNote({ name, data, trial }) {
  const batches = trial === null ? data.laptop : data.laptop.filter((batch) => batch === shown(columnOf(data, "batch"), trial));
  return batches.length ? `${name}: ${LAPTOP}: ${batches.join(", ")}.` : "";
}

/** Return what the versions from one side to the other changed, if both are of one sweep. */
function changedFiles(a, b) {
  if (a.data !== b.data) return [];
  const places = [a, b].map((side) => a.data.versions.indexOf(versionOf(side))).sort((one, other) => one - other);
  const changes = a.data.versions.slice(places[0] + 1, places[1] + 1).flatMap(({ files = [] }) => files);
  return changes.map(([path, added, removed]) => (added === null ? path : `${path} +${added} −${removed}`));
}

/** Return why the objectives of two sides must not be compared; empty if they may. */
function refusal(a, b) {
  if (a.data.metric !== b.data.metric || a.data.goal !== b.data.goal) return "They have different metrics";
  return versionOf(a).data === versionOf(b).data ? "" : "They ran on different data";
}

function verdict(a, b) {
  const refused = refusal(a, b);
  if (refused) return `${refused}, so their objectives are not compared.`;
  const values = [a, b].map(({ data, best }) => (best === null ? null : objectiveOf(data).values[best]));
  if (values.includes(null)) return "At least one of them has no result to compare.";
  const difference = values[1] - values[0];
  const what = a.trial === null && b.trial === null ? "The best of B" : "B";
  if (difference === 0) return `Both reach the same ${a.data.metric}.`;
  return `${what} is ${isBetter(a, difference) ? "better" : "worse"} by ${short(Math.abs(difference))} in ${a.data.metric}.`;
}

function isBetter(side, difference) {
  return (side.data.goal === "maximize") === difference > 0;
}

/** Return the ranked trials of a side by configuration, with their objectives: replicates are together. */
function byConfiguration({ data, ranked }) {
  const parameters = data.columns.filter((column) => column.key.startsWith("params."));
  const objective = objectiveOf(data).values;
  const groups = new Map();
  for (const trial of ranked) {
    if (objective[trial] === null) continue;
    const values = parameters.filter((column) => column.values[trial] !== null).map((column) => `${column.title} ${shown(column, trial)}`);
    const key = values.sort().join(", ");
    const group = groups.get(key) ?? { trials: [], values: [] };
    group.trials.push(trial);
    group.values.push(objective[trial]);
    groups.set(key, group);
  }
  return groups;
}

function sharedConfigurations(a, b) {
  const [first, second] = [byConfiguration(a), byConfiguration(b)];
  const shared = [...first.keys()].filter((key) => second.has(key)).map((key) => [key, mean(first.get(key).values), mean(second.get(key).values)]);
  return { shared, onlyA: first.size - shared.length, onlyB: second.size - shared.length };
}

function showPairs(a, b, { shared, onlyA, onlyB }) {
  $("pairs-part").hidden = false;
  const refused = refusal(a, b);
  $("pairs-note").textContent = `${shared.length} configurations are in both; ${onlyA} only in A, ${onlyB} only in B.${refused && shared.length ? ` ${refused}: differences are not shown.` : ""}`;
  $("pairs").parentElement.hidden = !shared.length;
  const titles = ["configuration", "A", "B", "B less A"].map((title) => el("th", { scope: "col" }, title));
  $("pairs").tHead.replaceChildren(el("tr", {}, ...titles));
  const rows = shared.slice(0, MOST_PAIRS).map(([key, one, other]) => {
    const difference = refused ? "" : short(other - one);
    return el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, short(one)), el("td", {}, short(other)), el("td", {}, difference));
  });
  $("pairs").tBodies[0].replaceChildren(...rows);
}

/** Return whether what both sides have tried differs by more than chance: a t interval of the paired differences. */
function pairedNoise(a, { shared }) {
  const differences = shared.map(([, one, other]) => other - one);
  if (differences.length < 2) return "They share fewer than two configurations, so nothing here says whether that is more than chance.";
  const middle = mean(differences);
  const reach = (student(differences.length - 1) * deviation(differences)) / Math.sqrt(differences.length);
  const [low, high] = [middle - reach, middle + reach];
  const isNoise = low <= 0 && high >= 0;
  const text = `Over the ${differences.length} configurations that both have, B is ${isBetter(a, middle) ? "better" : "worse"} by ${short(Math.abs(middle))} on average, 95 % interval of B less A ${short(low)} to ${short(high)}`;
  return `${text}: ${isNoise ? "no more than noise" : "more than noise"}.`;
}

/** Return whether two trials differ by more than trials do that differ in nothing but their seed. */
function seedNoise(a, b) {
  const values = [a, b].map(({ data, best }) => objectiveOf(data).values[best]);
  if (values.includes(null)) return "";
  let [squares, freedom] = [0, 0];
  for (const data of new Set([a.data, b.data])) {
    for (const { batches } of data.versions) {
      const batch = columnOf(data, "batch");
      const ranked = data.trials.map((_, trial) => trial).filter((trial) => batches.includes(shown(batch, trial)));
      for (const group of byConfiguration({ data, ranked }).values()) {
        freedom += group.values.length - 1;
        squares += (group.values.length - 1) * deviation(group.values) ** 2;
      }
    }
  }
  if (!freedom) return "Without replicates, nothing says whether that is more than seed noise.";
  const reach = student(freedom) * Math.sqrt((2 * squares) / freedom);
  const isNoise = Math.abs(values[1] - values[0]) <= reach;
  return `Trials that differ only in their seed differ by up to ${short(reach)} in 95 % of the cases (${freedom} degrees of freedom): this is ${isNoise ? "no more than noise" : "more than noise"}.`;
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function deviation(values) {
  if (values.length < 2) return 0;
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
}

/** Return the quantile of Student's t that has 95 % between it and its negative, as `results/inference.py` does. */
function student(freedom) {
  let [low, high] = [0, Math.PI / 2];
  for (let halving = 0; halving < 100; halving++) {
    const middle = (low + high) / 2;
    if (within(middle, freedom) < 0.95) low = middle;
    else high = middle;
  }
  return Math.sqrt(freedom) * Math.tan(low);
}

function within(angle, freedom) {
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const odd = freedom % 2;
  let [term, total] = [odd ? cosine : 1, 0];
  for (let step = 1 + odd; step < freedom; step += 2) {
    total += term;
    term *= (cosine * cosine * step) / (step + 1);
  }
  return odd ? (2 / Math.PI) * (angle + sine * total) : sine * total;
}

/** Show why the best value moved where that was computed, and the command that computes it for any two sides. */
function showExplanation(a, b) {
  $("explain-part").hidden = false;
  $("explained").textContent = "This tests code, data, environment, values and budget, and proposes the sweep that separates them:";
  $("command").textContent = `sweep compare ${a.name} ${b.name} --explain`;
  const move = a.data === b.data && a.data.moves.find(({ before, after }) => before === a.commit && after === b.commit);
  if (!move) return;
  $("explained").textContent = "With proposals of sweeps that separate what is not separated yet:";
  $("why-part").hidden = false;
  $("why").textContent = `${move.verdict} (best of B less best of A: ${short(move.moved)})`;
  const rows = move.factors.map(({ factor, state, effect, interval, probability, trials, reason }) => {
    const cells = [state, effect === null ? "" : short(effect), interval ? interval.map(short).join(" to ") : "", probability === null ? "" : short(probability), trials ? String(trials) : "", reason];
    return el("tr", { className: state === "equal" ? "same-value" : "" }, el("th", { scope: "row" }, factor), ...cells.map((text) => el("td", {}, text)));
  });
  $("factors").tBodies[0].replaceChildren(...rows);
}
