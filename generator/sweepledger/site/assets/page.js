// What all pages share: their data, elements made from text only, and the ways to write numbers.
const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const LAPTOP = "made on a laptop, and signed by nobody";

/** What a version of a program has. */
const PROGRAM = ["image", "code", "data", "command", "environment lock"];

/** Keys of columns that are axes, and no properties of a trial: what was spent until it ended. */
const RUNNING_SUMS = new Set(["hours", "cost"]);

/** Return an element with text or children. Text is never parsed as markup. */
function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function link(href, text) {
  return el("a", { href }, text);
}

/** Return a number with at most six significant digits, as the reports write it. */
function short(number) {
  if (!Number.isFinite(number)) return String(number);
  const text = String(Number(number.toPrecision(6)));
  return text === "-0" ? "0" : text;
}

/** Return the value of a trial in a column as text; empty if it has none. */
function shown(column, trial) {
  const value = column.values[trial];
  if (value === null || value === undefined) return "";
  if (column.categories) return column.categories[value];
  return typeof value === "number" ? short(value) : String(value);
}

/** Copy text, also where a page of a folder may not use the clipboard. */
async function copy(text, output) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  output.textContent = "Copied.";
}

/** Return a function that runs `work` once before the next frame, however often it is called. */
function onceAFrame(work) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      work();
    });
  };
}
