// Which trials are selected: those that every brush and the filter of the table contain. Charts and table listen.
class Selection {
  #tests = new Map();
  #listeners = [];
  constructor(count) {
    this.count = count;
    this.mask = new Uint8Array(count).fill(1);
    this.size = count;
    this.hovered = -1;
  }

  get isActive() {
    return this.#tests.size > 0;
  }

  /** Set or, with null, remove the test of a brush: a function from the number of a trial to whether it is inside. */
  set(key, test) {
    if (test) this.#tests.set(key, test);
    else if (!this.#tests.delete(key)) return;
    const tests = [...this.#tests.values()];
    this.size = 0;
    for (let trial = 0; trial < this.count; trial++) {
      const inside = tests.every((each) => each(trial));
      this.mask[trial] = inside;
      this.size += inside;
    }
    this.#tell("selection");
  }

  /** Remove all tests. */
  clear() {
    this.#tests.clear();
    this.mask.fill(1);
    this.size = this.count;
    this.#tell("clear");
  }

  /** Name the trial under the pointer; -1 for none. */
  hover(trial) {
    if (trial === this.hovered) return;
    this.hovered = trial;
    this.#tell("hover");
  }

  listen(listener) {
    this.#listeners.push(listener);
  }

  #tell(what) {
    for (const listener of this.#listeners) listener(what);
  }
}
