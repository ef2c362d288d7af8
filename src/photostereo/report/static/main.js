// Start what the page holds. Without WebGL2 the still pictures stay, and the page says why.

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Hints are for those who have not begun.
  for (const view of document.querySelectorAll(".viewer"))
    view.addEventListener("pointerdown", () => view.classList.add("begun"), { once: true });
  const page = document.documentElement;
  if (new URLSearchParams(location.search).has("embed")) embed(page);
  const waiting = [];

  const relightFigure = document.getElementById("relight-view");
  const relighter = new Relighter(relightFigure, data.relight, page.dataset.tiles || "");
  let controls = null;
  if (relighter.works) {
    relightFigure.classList.add("live");
    controls = new Controls(relighter);
    waiting.push(relighter.stage.started);
  } else {
    page.classList.add("no-webgl");
  }
  const comparison = data.compare ? new Comparison(relightFigure, data.relight, relighter) : null;
  if (relighter.works) {
    equip(relighter, controls, comparison, data);
  }
  document.querySelectorAll("table.sortable").forEach(makeSortable);

  const surfaceFigure = document.getElementById("surface-view");
  if (surfaceFigure && relighter.works) {
    surfaceFigure.classList.add("live");
    startWhenNear(surfaceFigure, () => startSurface(surfaceFigure, data, relighter.pyramid));
  }

  const sheet = document.getElementById("photographs");
  if (sheet) {
    new ContactSheet(sheet, data.photographs, {
      relight: (light) => {
        if (!controls) return;
        controls.shineFrom(light);
        const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
        relightFigure.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "center" });
      },
    });
  }

  Promise.all(waiting).then(
    () => {
      page.dataset.ready = String(Math.round(performance.now()));
    },
    (problem) => {
      relightFigure.classList.remove("live");
      page.classList.add("no-webgl");
      console.error(problem);
    },
  );
}

// What people who look closely need: numbers, lines, notes, links, pictures to take along.
function equip(relighter, controls, comparison, data) {
  const { figure, stage } = relighter;
  const probe = new Probe(relighter);
  const hud = new Hud(relighter, probe);
  const measure = new Measure(relighter, probe, controls);
  const notes = new Notes(relighter, controls, data.identity);
  const links = new Links(relighter, controls, comparison);
  const picture = () => takeSnapshot(relighter, hud, { line: measure.line, notes: notes.list });
  figure.querySelector("[data-action=snapshot]").addEventListener("click", () => {
    picture().toBlob((blob) => saveBlob(`${fileName()}-view.png`, blob));
  });
  printAsPicture(figure, stage, picture);
  new Takeaway(relighter, controls);
  if (data.photographs) new Beside(relighter, controls, data.photographs);
  const made = document.querySelector(".made");
  if (made) new Downloads(relighter, probe, made);
  stage.started.then(() => links.restore());
}

function startSurface(figure, data, pyramid) {
  const pick = (name) => ({ grid: data.surface.grids[name], name, pyramid });
  const names = Object.keys(data.surface.grids);
  const view = new SurfaceView(figure, pick(data.surface.first ?? names[0]));
  if (!view.works) {
    figure.classList.remove("live");
    return;
  }
  printAsPicture(figure, view.stage, () => {
    view.stage.render();
    return view.canvas;
  });
  view.stage.started.then(
    () => {
      figure.dataset.ready = "true";
    },
    (problem) => {
      figure.classList.remove("live");
      console.error(problem);
    },
  );
  // Once to the left, once to the right: the back of a surface seen from one side is unknown.
  figure.querySelector("[data-action=turntable]").addEventListener("click", async (event) => {
    const { camera } = view;
    const { yaw } = camera;
    event.target.disabled = true;
    await saveVideo(
      "turntable",
      view.canvas,
      (share) => {
        camera.yaw = 0.9 * Math.sin(2 * Math.PI * share);
        view.stage.changed();
      },
      figure.querySelector(".turn-words"),
    );
    camera.yaw = yaw;
    event.target.disabled = false;
    view.stage.changed();
  });
  const choice = figure.querySelector("[data-surface=result]");
  if (choice) choice.addEventListener("change", () => view.replace(pick(choice.value)));
}

// Inside another page: the view alone, with a line that leads to the whole page.
function embed(page) {
  page.classList.add("embed");
  /** @type {HTMLAnchorElement} */
  const link = document.querySelector(".embed-foot a");
  link.href = location.pathname;
}

// A name for files, after the object.
function fileName() {
  return (
    document
      .querySelector("h1")
      .textContent.trim()
      .replace(/[^\p{L}\p{N}._-]+/gu, "-")
      .slice(0, 60) || "view"
  );
}

// On paper a canvas is empty, and what lies over it is misplaced: a picture of both takes their place.
function printAsPicture(figure, stage, drawn) {
  const picture = Object.assign(document.createElement("img"), {
    className: "print-picture",
    alt: "The view",
  });
  window.addEventListener("beforeprint", () => {
    if (!stage.ready) return;
    picture.src = drawn().toDataURL("image/jpeg", 0.9);
    figure.querySelector(".stage").append(picture);
  });
  window.addEventListener("afterprint", () => picture.remove());
}

// A press on a heading sorts the rows by that column, a second one the other way round.
function makeSortable(table) {
  const body = table.tBodies[0];
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("[data-sort]");
    if (!button) return;
    const heading = button.closest("th");
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const one of table.tHead.querySelectorAll("th")) one.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const column = Number(button.dataset.sort);
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const order = (a, b) =>
      column ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b));
    body.append(...[...body.rows].sort((a, b) => (up ? order(a, b) : order(b, a))));
  });
}

// Big meshes are unpacked when they come near the window, so that the page is usable at once.
function startWhenNear(element, begin) {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      begin();
    },
    { rootMargin: "400px" },
  );
  observer.observe(element);
}

start();
