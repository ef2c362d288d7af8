// Questions to the server, and what it reports by itself.

import { h } from "./dom.js";

const DID_NOT_WORK = "That did not work.";

// What the server refuses; `code` identifies the reason.
class RefusedError extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("The app does not respond. Is it still running in the terminal?");
  }
  if (!answer.ok) {
    const facts = await answer.json().catch(() => ({}));
    const usual = answer.status === 401 ? "Open the address shown in the terminal." : DID_NOT_WORK;
    throw new RefusedError(facts.message || usual, facts.code);
  }
  return answer.json();
}

export const post = (path, value = {}) =>
  ask(path, {
    method: "POST",
    body: JSON.stringify(value),
    headers: { "Content-Type": "application/json" },
  });
export const put = (path, body) => ask(path, { method: "PUT", body });

export function say(words, kind = "notice") {
  const box = document.getElementById("messages");
  const line = h("p", { class: `message ${kind}` }, words);
  const close = h(
    "button",
    { class: "quiet", "aria-label": "Close", onclick: () => line.remove() },
    "×",
  );
  line.append(close);
  box.append(line);
  if (kind !== "problem") setTimeout(() => line.remove(), 6000);
}

// The last message of a page that is no longer connected, perhaps with a button.
function sayEnd(words, button = null) {
  const box = document.getElementById("messages");
  const act =
    button && h("button", { type: "button", class: "primary", onclick: button.act }, button.words);
  box.replaceChildren(h("p", { class: "message problem ended" }, words, act));
}

// Runs something that may fail; the failure is shown.
export async function attempt(work) {
  try {
    return await work();
  } catch (problem) {
    say(problem.message, "problem");
    return null;
  }
}

/**
 * What the server knows of a capture, part by part; `PageState` in app/shared_state.py has the same names.
 * @typedef {object} PageState
 * @property {{ name: string, folder: string, files: string[], light_file?: string, mask_file?: string }} capture
 * @property {{ mask?: string, lights?: string, circle?: number[], leave_out?: string[], keep?: string[],
 *   moved_lights?: Record<string, number[]> }} edits the corrections
 * @property {{ state: string, error?: Refusal, full?: number[], small?: number[] }} opening
 * @property {{ state: string, error?: Refusal, stage?: string }} looking
 * @property {{ number: number, name: string, error?: string, unfit?: string, clipped?: number }[]} photographs
 * @property {any[]} results
 * @property {any} lights
 * @property {{ version: number, share: number, notes: string[] }} mask
 * @property {{ version: number }} glance the picture of normals
 * @property {{ general: any[], photographs: Record<string, string[]>, faults: Record<string, string> }} findings
 * @property {any} job the running or last solve
 * @property {any} preview the result of the last preview
 */

/** @typedef {{ code: string, message: string }} Refusal */

/**
 * What can be asked for a capture; `ACTIONS` in app/session.py has the same names.
 * @typedef {"edits" | "circle" | "save-lights" | "preview" | "solve" | "cancel" | "export" | "reveal"} ActionName
 */

// The state of an open capture, kept up to date.
export class Capture {
  constructor(id, onchange) {
    this.id = id;
    /** @type {Partial<PageState>} */
    this.state = {};
    this.foundBall = false; // without help; it can be found again
    this.path = `/api/c/${id}`;
    this.source = new EventSource(`${this.path}/events`);
    this.source.onmessage = (message) => {
      const news = JSON.parse(message.data);
      Object.assign(this.state, news);
      document.documentElement.classList.remove("lost");
      onchange(new Set(Object.keys(news)));
    };
    this.source.addEventListener("end", (message) => this.end(JSON.parse(message.data).reason));
    this.source.onerror = () => {
      document.documentElement.classList.add("lost");
      if (this.source.readyState === EventSource.CLOSED) this.end("closed");
    };
  }

  // There will be no more news: the app has ended, or this capture was closed because others were opened.
  async end(reason) {
    this.source.close();
    document.documentElement.classList.remove("lost");
    document.documentElement.classList.add("ended");
    if (reason === "app") {
      sayEnd("The app has ended. Start it again in the terminal: photostereo app");
      return;
    }
    try {
      const facts = await ask("/api/start");
      const entry = facts.recent.find((one) => one.id === this.id);
      if (entry)
        sayEnd("This capture was closed.", {
          words: "Open again",
          act: () => this.openAgain(entry.folder),
        });
      else
        sayEnd("This capture is no longer open.", {
          words: "Start page",
          act: () => location.assign("#/"),
        });
    } catch (problem) {
      sayEnd(problem.message);
    }
  }

  async openAgain(folder) {
    if (await attempt(() => post("/api/open", { path: folder }))) location.reload();
  }

  close() {
    this.source.close();
  }

  picture(kind, number = 0, version = "") {
    return `${this.path}/picture/${kind}/${number}${version ? `?v=${version}` : ""}`;
  }

  edit(changes) {
    return attempt(() => post(`${this.path}/edits`, changes));
  }

  /** @param {ActionName} what */
  act(what, value = {}) {
    return post(`${this.path}/${what}`, value);
  }

  get left() {
    return new Set(this.state.edits?.leave_out ?? []);
  }

  get tooFew() {
    return this.state.looking?.error?.code === "too-few-photographs";
  }

  get ready() {
    return this.state.opening?.state === "done";
  }

  // What is wrong with a photograph that is not used by itself, unless it is kept by hand.
  fault(name) {
    return this.state.findings?.faults?.[name];
  }

  used(name) {
    const about = this.state.photographs?.find((one) => one.name === name);
    return (
      !about?.error &&
      !about?.unfit &&
      !this.left.has(name) &&
      (!this.fault(name) || this.kept.has(name))
    );
  }

  get kept() {
    return new Set(this.state.edits?.keep ?? []);
  }

  toggle(name) {
    const { left, kept } = this;
    if (!this.used(name)) {
      left.delete(name);
      if (this.fault(name)) kept.add(name);
    } else if (!kept.delete(name)) left.add(name);
    return this.edit({ leave_out: [...left], keep: [...kept] });
  }
}
