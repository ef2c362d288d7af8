// Start what the page holds. Without WebGL2 the still pictures stay, and the page says why.

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.documentElement;
  const waiting = [];

  const relightFigure = document.getElementById("relight-view");
  const relighter = new Relighter(relightFigure, data.relight);
  if (relighter.works) {
    relightFigure.classList.add("live");
    waiting.push(relighter.stage.started);
  } else {
    page.classList.add("no-webgl");
  }
  if (data.compare) new Comparison(relightFigure, data.relight, relighter);

  const surfaceFigure = document.getElementById("surface-view");
  if (surfaceFigure && relighter.works) {
    surfaceFigure.classList.add("live");
    startWhenNear(surfaceFigure, () => startSurface(surfaceFigure, data));
  }

  const sheet = document.getElementById("photographs");
  if (sheet) {
    new ContactSheet(sheet, data.photographs, {
      relight: (light) => {
        if (!relighter.works) return;
        relighter.stopSweep();
        relighter.lamp.setFromDirection(light);
        relighter.pin(true);
        const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
        relightFigure.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "center" });
      },
    });
  }

  Promise.all(waiting).then(() => {
    page.dataset.ready = String(Math.round(performance.now()));
  }, (problem) => {
    relightFigure.classList.remove("live");
    page.classList.add("no-webgl");
    console.error(problem);
  });
}

function startSurface(figure, data) {
  const { cover, albedo, sets } = data.relight;
  const pick = (name) => ({ grid: data.surface.grids[name], set: sets[name], cover, albedo });
  const names = Object.keys(data.surface.grids);
  const view = new SurfaceView(figure, pick(names[0]));
  if (!view.works) {
    figure.classList.remove("live");
    return;
  }
  view.stage.started.then(() => {
    figure.dataset.ready = "true";
  }, (problem) => {
    figure.classList.remove("live");
    console.error(problem);
  });
  const choice = figure.querySelector("[data-surface=result]");
  if (choice) choice.addEventListener("change", () => view.replace(pick(choice.value)));
}

// Big meshes are unpacked when they come near the window, so that the page is usable at once.
function startWhenNear(element, begin) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    begin();
  }, { rootMargin: "400px" });
  observer.observe(element);
}

start();
