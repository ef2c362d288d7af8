// Notes pinned to places: kept in this browser's storage under the result's own name, saved and read as JSON.

const NOTE_LONGEST = 2000;
const NOTES_MOST = 500;

// Only what a note consists of comes through, whatever was kept or read.
function soundNotes(found, { width, height }) {
  const list = Array.isArray(found) ? found : [];
  return list
    .filter(
      (note) =>
        note && Number.isFinite(note.x) && Number.isFinite(note.y) && typeof note.text === "string",
    )
    .filter((note) => note.x >= 0 && note.y >= 0 && note.x <= width && note.y <= height)
    .slice(0, NOTES_MOST)
    .map((note) => ({ x: note.x, y: note.y, text: note.text.slice(0, NOTE_LONGEST) }));
}

class Notes {
  constructor(relighter, controls, identity) {
    this.relighter = relighter;
    this.controls = controls;
    this.name = "note";
    this.key = `photostereo notes ${identity}`;
    this.list = [];
    this.figure = relighter.figure;
    this.box = this.figure.querySelector(".notes");
    this.pins = this.figure.querySelector(".pins");
    this.said = this.box.querySelector(".notes-words");
    try {
      this.list = this.fromArrays(JSON.parse(localStorage.getItem(this.key) || "[]"));
    } catch {
      this.list = [];
    }
    relighter.view.watch(() => this.place());
    this.figure
      .querySelector("[data-tool=note]")
      .addEventListener("click", () => controls.take(this));
    this.box
      .querySelector("[data-action=add-note]")
      .addEventListener("click", () => this.add([relighter.view.x, relighter.view.y]));
    this.box.querySelector("[data-action=save-notes]").addEventListener("click", () => this.save());
    this.box
      .querySelector("[data-notes=read]")
      .addEventListener("change", (event) => this.read(event.target));
    this.show();
  }

  // Kept and saved in columns and rows of the arrays, shown in the page's frame.
  fromArrays(notes) {
    const { data } = this.relighter;
    const [left, top] = data.origin;
    const list = Array.isArray(notes) ? notes : [];
    return soundNotes(
      list.map((note) => note && { ...note, x: note.x - left + 0.5, y: note.y - top + 0.5 }),
      data,
    );
  }

  toArrays() {
    const { origin } = this.relighter.data;
    return this.list.map(({ x, y, text }) => ({
      x: x + origin[0] - 0.5,
      y: y + origin[1] - 0.5,
      text,
    }));
  }

  taken() {
    this.controls.open("notes");
  }

  down() {}

  move() {}

  cancel() {}

  up([x, y]) {
    const { width, height } = this.relighter.data;
    if (x < 0 || y < 0 || x > width || y > height) return;
    this.controls.take(this);
    this.add([x, y]);
  }

  add([x, y]) {
    this.list.push({ x, y, text: "" });
    this.controls.open("notes");
    this.changed();
    this.box.querySelector("li:last-child textarea").focus();
  }

  changed() {
    this.show();
    this.keep();
  }

  keep() {
    try {
      if (this.list.length) localStorage.setItem(this.key, JSON.stringify(this.toArrays()));
      else localStorage.removeItem(this.key);
      this.said.textContent = this.list.length
        ? "Stored in this browser. Save them to use them elsewhere."
        : "";
    } catch {
      this.said.textContent =
        "This browser does not store notes for this page: save them before you close it.";
    }
  }

  show() {
    this.box
      .querySelector("ol")
      .replaceChildren(...this.list.map((note, number) => this.row(note, number)));
    this.pins.replaceChildren(
      ...this.list.map((note, number) => {
        const pin = Object.assign(document.createElement("button"), {
          type: "button",
          className: "pin",
          textContent: String(number + 1),
        });
        pin.title = note.text;
        pin.setAttribute("aria-label", `Note ${number + 1}: ${note.text}`);
        pin.addEventListener("click", () => {
          this.controls.open("notes");
          this.box.querySelectorAll("textarea")[number].focus();
        });
        return pin;
      }),
    );
    this.box.querySelector("[data-action=save-notes]").disabled = !this.list.length;
    this.place();
  }

  row(note, number) {
    const row = document.createElement("li");
    const text = Object.assign(document.createElement("textarea"), {
      value: note.text,
      rows: 2,
      maxLength: NOTE_LONGEST,
    });
    text.setAttribute("aria-label", `Note ${number + 1}`);
    text.addEventListener("input", () => {
      note.text = text.value;
      this.pins.children[number].title = note.text;
      this.keep();
    });
    const go = Object.assign(document.createElement("button"), {
      type: "button",
      textContent: "Go there",
    });
    go.addEventListener("click", () =>
      this.relighter.view.set(
        Math.max(this.relighter.view.scale, 4 * this.relighter.view.fitting),
        note.x,
        note.y,
      ),
    );
    const drop = Object.assign(document.createElement("button"), {
      type: "button",
      textContent: "Remove",
    });
    drop.addEventListener("click", () => {
      this.list.splice(number, 1);
      this.changed();
    });
    row.append(text, go, drop);
    return row;
  }

  place() {
    this.list.forEach((note, number) => {
      const pin = this.pins.children[number];
      if (!pin) return;
      const [x, y] = this.relighter.view.toCanvas([note.x, note.y]);
      const [width, height] = this.relighter.view.canvas;
      pin.hidden = x < 0 || y < 0 || x > width || y > height;
      pin.style.left = `${x}px`;
      pin.style.top = `${y}px`;
    });
  }

  save() {
    const { units } = this.relighter;
    const about = "x and y are column and row of the arrays, whole at the middle of a pixel";
    const facts = { about, pixel_size: units.size, unit: units.unit, notes: this.toArrays() };
    saveText("notes.json", `${JSON.stringify(facts, null, 2)}\n`, "application/json");
  }

  async read(field) {
    const [file] = field.files;
    field.value = "";
    if (!file) return;
    try {
      const found = JSON.parse(await file.text());
      const notes = this.fromArrays(found.notes || found);
      if (!notes.length) throw new Error("no notes");
      this.list.push(...notes);
      this.changed();
    } catch {
      this.said.textContent = "That file contains no notes for this page.";
    }
  }
}
