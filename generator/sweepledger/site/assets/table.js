// The table of all trials: filtered by text and conditions, sorted, in pages, with the columns that readers choose.
const PAGE_ROWS = 50;
const FIRST_COLUMNS = 9;
const CONDITION = /^([^<>=:]+)(<=|>=|<|>|=|:)(.+)$/;

/** Return a test of trials for a query, or null for an empty one. */
function queryTest(text, model) {
  const tests = text
    .trim()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => conditionTest(word, model) ?? wordTest(word.toLowerCase(), model));
  return tests.length ? (trial) => tests.every((test) => test(trial)) : null;
}

function conditionTest(word, model) {
  const match = CONDITION.exec(word);
  const column = match && [...model.columns.values()].find((each) => each.title === match[1] || each.key === match[1]);
  if (!column) return null;
  const [, , operator, text] = match;
  const number = Number(text);
  if (operator === ":" || operator === "=") {
    const same = column.categories || Number.isNaN(number);
    return same
      ? (trial) => shown(column, trial).toLowerCase() === text.toLowerCase()
      : (trial) => column.values[trial] === number;
  }
  const compare = { "<": (a) => a < number, ">": (a) => a > number, "<=": (a) => a <= number, ">=": (a) => a >= number };
  return (trial) => typeof column.values[trial] === "number" && !column.categories && compare[operator](column.values[trial]);
}

function wordTest(word, model) {
  const columns = [...model.columns.values()].filter((column) => column.categories);
  return (trial) => model.trials[trial].includes(word) || columns.some((column) => shown(column, trial).toLowerCase().includes(word));
}

class Table {
  #page = 0;
  constructor(model, selection) {
    this.model = model;
    this.selection = selection;
    this.columns = [...model.columns.values()].filter((column) => !RUNNING_SUMS.has(column.key));
    this.visible = new Set(this.columns.slice(0, FIRST_COLUMNS).map((column) => column.key));
    this.sort = { key: "objective", up: model.goal !== "maximize" };
    this.head = $("table").createTHead();
    this.body = $("table").createTBody();
    this.#addChooser();
    this.#addControls();
    this.draw();
  }

  #addChooser() {
    for (const column of this.columns) {
      const box = el("input", { type: "checkbox", checked: this.visible.has(column.key) });
      box.addEventListener("change", () => {
        if (box.checked) this.visible.add(column.key);
        else this.visible.delete(column.key);
        this.draw();
      });
      $("columns").append(el("label", {}, box, ` ${column.title}`));
    }
  }

  #addControls() {
    const turn = (by) => {
      this.#page += by;
      this.#drawRows();
    };
    $("previous").addEventListener("click", () => turn(-1));
    $("next").addEventListener("click", () => turn(1));
    $("query").addEventListener(
      "input",
      onceAFrame(() => this.selection.set("query", queryTest($("query").value, this.model))),
    );
    $("copy-csv").addEventListener("click", () => copy(this.csv(), $("copied")));
    $("copy-command").addEventListener("click", () => copy(this.commands(), $("copied")));
  }

  draw() {
    const shownColumns = this.columns.filter((column) => this.visible.has(column.key));
    this.shown = shownColumns;
    const titles = [["trial", "trial"], ...shownColumns.map((column) => [column.key, column.title])];
    const cells = titles.map(([key, title]) => {
      const isSorted = this.sort.key === key;
      const button = el("button", { type: "button" }, `${title}${isSorted ? (this.sort.up ? " ↑" : " ↓") : ""}`);
      button.addEventListener("click", () => {
        this.sort = { key, up: isSorted ? !this.sort.up : true };
        this.draw();
        [...this.head.querySelectorAll("button")].find((each) => each.textContent.startsWith(title))?.focus();
      });
      const order = isSorted ? (this.sort.up ? "ascending" : "descending") : "none";
      return el("th", { scope: "col", "aria-sort": order }, button);
    });
    this.head.replaceChildren(el("tr", {}, ...cells));
    this.select();
  }

  /** Show the selected trials. */
  select() {
    const { key, up } = this.sort;
    const column = this.model.columns.get(key);
    const value = column ? (trial) => (column.categories ? shown(column, trial) : column.values[trial]) : (trial) => this.model.trials[trial];
    const sign = up ? 1 : -1;
    this.rows = [];
    for (let trial = 0; trial < this.selection.count; trial++) if (this.selection.mask[trial]) this.rows.push(trial);
    this.rows.sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      // Trials without a value are last in both directions.
      if (a === null || b === null || a === "" || b === "") return Number(a === null || a === "") - Number(b === null || b === "") || one - other;
      return (a < b ? -sign : a > b ? sign : 0) || one - other;
    });
    this.#page = 0;
    this.#drawRows();
  }

  #drawRows() {
    const pages = Math.max(1, Math.ceil(this.rows.length / PAGE_ROWS));
    this.#page = Math.min(Math.max(0, this.#page), pages - 1);
    const first = this.#page * PAGE_ROWS;
    this.body.replaceChildren(
      ...this.rows.slice(first, first + PAGE_ROWS).map((trial) => {
        const name = el("td", {}, link(`trials.html#${this.model.trials[trial]}`, this.model.trials[trial]));
        const cells = this.shown.map((column) => el("td", { className: column.categories ? "" : "number" }, shown(column, trial)));
        const row = el("tr", { className: trial === this.model.best ? "best" : "" }, name, ...cells);
        row.addEventListener("pointerenter", () => this.selection.hover(trial));
        row.addEventListener("pointerleave", () => this.selection.hover(-1));
        return row;
      }),
    );
    $("page").textContent = this.rows.length
      ? `${first + 1} to ${Math.min(first + PAGE_ROWS, this.rows.length)} of ${this.rows.length.toLocaleString("en")}`
      : "No trial is selected.";
    $("previous").disabled = this.#page === 0;
    $("next").disabled = this.#page >= pages - 1;
  }

  csv() {
    // A spreadsheet would compute text that begins like a formula.
    const cell = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
    const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = this.rows.map((trial) => [this.model.trials[trial], ...this.shown.map((column) => shown(column, trial))]);
    return [["trial", ...this.shown.map((column) => column.title)], ...lines].map((line) => line.map(cell).map(quote).join(",")).join("\n");
  }

  commands() {
    return this.rows.map((trial) => `sweep show ${this.model.trials[trial]} --reproduce`).join("\n");
  }
}
