// Photographs that are dropped anywhere on the page: files, or folders with all that is in them.

import { attempt, post, put, say } from "./api.js";
import { plural } from "./dom.js";

// Most files that are looked at; the app accepts a thousand.
const MOST = 5000;

/**
 * A dropped file with its path inside the dropped folders.
 * @typedef {{ path: string, file: File }} Dropped
 */

/** All files of what was dropped; `entries` must be taken from the event before anything is awaited. */
async function collect(entries) {
  /** @type {Dropped[]} */
  const files = [];
  const waiting = entries.map((entry) => ({ entry, path: entry.name }));
  while (waiting.length && files.length < MOST) {
    const { entry, path } = waiting.shift();
    if (entry.name.startsWith(".")) continue;
    if (entry.isFile) files.push({ path, file: await fileOf(entry) });
    else {
      const inside = await contentOf(entry);
      waiting.push(...inside.map((one) => ({ entry: one, path: `${path}/${one.name}` })));
    }
  }
  return files;
}

/** @returns {Promise<File>} */
function fileOf(entry) {
  return new Promise((done, fail) => entry.file(done, fail));
}

/** @returns {Promise<FileSystemEntry[]>} */
async function contentOf(folder) {
  const reader = folder.createReader();
  const content = [];
  for (;;) {
    // A browser gives a hundred at a time.
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!some.length) return content.sort((a, b) => a.name.localeCompare(b.name));
    content.push(...some);
  }
}

// Sends photographs to the app and opens them.
export class Sender {
  /**
   * @param {string[]} accepts suffixes of the files that the app reads
   * @param {(words: string) => void} progress
   */
  constructor(accepts, progress) {
    this.accepts = accepts;
    this.progress = progress;
  }

  /** @param {Dropped[]} dropped */
  async send(dropped) {
    const isAccepted = ({ path }) =>
      this.accepts.some((suffix) => path.toLowerCase().endsWith(suffix));
    const files = dropped.filter(isAccepted);
    const refused = dropped.filter((one) => !isAccepted(one)).map(({ path }) => path);
    if (!files.length) {
      if (dropped.length) say("There are no photographs in what was dropped.", "problem");
      return;
    }
    const begun = await attempt(() => post("/api/drop", { name: nameOf(files) }));
    if (!begun) return;
    const sent = await this.sendAll(begun.drop, files, refused);
    this.progress("");
    sayRefused(refused);
    const answer = sent ? await attempt(() => post(`/api/drop/${begun.drop}/done`)) : null;
    if (answer) location.hash = `#/c/${answer.id}/photographs`;
  }

  /** @param {Dropped[]} files */
  async sendAll(drop, files, refused) {
    let sent = 0;
    for (const { path, file } of files) {
      this.progress(`Copying ${sent + 1} of ${files.length} …`);
      try {
        await put(`/api/drop/${drop}/${path.split("/").map(encodeURIComponent).join("/")}`, file);
        sent += 1;
      } catch {
        refused.push(path);
      }
    }
    return sent;
  }
}

/** The name of a capture: that of the folder that holds all files, or the day. */
function nameOf(files) {
  const folders = new Set(files.map(({ path }) => path.split("/").slice(0, -1)[0]));
  const [folder] = folders;
  return folders.size === 1 && folder
    ? folder
    : `photographs-${new Date().toISOString().slice(0, 10)}`;
}

function sayRefused(names) {
  if (!names.length) return;
  const some = names.slice(0, 3).join(", ");
  say(`${plural(names.length, "file")} not used: ${some}${names.length > 3 ? " …" : ""}`);
}

/** Accept drops on the whole window; a browser would open a photograph and leave the app. */
export function listenForDrops(sender) {
  const { classList } = document.documentElement;
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  window.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    classList.add("dropping");
  });
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) classList.remove("dropping");
  });
  window.addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    classList.remove("dropping");
    const entries = [...event.dataTransfer.items]
      .map((item) => item.webkitGetAsEntry?.())
      .filter(Boolean);
    const plain = [...event.dataTransfer.files].map((file) => ({ path: file.name, file }));
    const files = entries.length ? await attempt(() => collect(entries)) : plain;
    if (files) await sender.send(files);
  });
}
