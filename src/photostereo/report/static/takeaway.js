// Pictures and videos to take along: the whole object in full resolution, a light that goes round, a surface that turns.

const BLOCK = 2048;
const MOST_SIDE = 8192;
const VIDEO_SECONDS = 6;
const VIDEO_FRAMES = 60; // at least: a slow machine takes longer rather than fewer
const VIDEO_KINDS = ["video/webm;codecs=vp8", "video/webm", "video/mp4"];

// The whole object as it looks now, a pixel for each of the finest level that can be reached, in blocks.
async function wholePicture(relighter) {
  const { pyramid, shown, stage, store, canvas } = relighter;
  let level = pyramid.finest(shown[0], "normals");
  while (Math.max(...pyramid.size(level)) > MOST_SIDE) level += 1;
  const [width, height] = pyramid.size(level);
  const picture = Object.assign(document.createElement("canvas"), { width, height });
  const pen = picture.getContext("2d");
  const wanted = [...new Set(shown), ...(relighter.look.mode === "error" ? ["truth"] : [])];
  for (let top = 0; top < height; top += BLOCK) {
    for (let left = 0; left < width; left += BLOCK) {
      const [wide, high] = [Math.min(BLOCK, width - left), Math.min(BLOCK, height - top)];
      const first = [left, top].map((at) => Math.max(0, Math.floor(at / pyramid.tile) - 1));
      const last = [left + wide, top + high].map((at) => Math.ceil(at / pyramid.tile));
      const coming = [];
      for (const name of wanted) {
        for (const channel of relighter.channels().filter((one) => pyramid.has(name, one))) {
          for (let row = first[1]; row <= last[1]; row += 1) {
            for (let col = first[0]; col <= last[0]; col += 1)
              coming.push(store.tile(name, channel, level, col, row)?.loaded);
          }
        }
      }
      await Promise.all(coming);
      // Drawn and taken away before the browser shows it.
      relighter.paintBlock(wide, high, { scale: 2 ** -level, left: -left, top: -top }, width);
      pen.drawImage(canvas, left, top);
      stage.measure();
      stage.render();
    }
  }
  return new Promise((done) => picture.toBlob(done, "image/png"));
}

// Record a canvas while `step` draws it at shares of the time from 0 to 1.
async function recordVideo(canvas, step, progress) {
  const type = VIDEO_KINDS.find((kind) => window.MediaRecorder?.isTypeSupported(kind));
  if (!type || !canvas.captureStream) return null;
  const recorder = new MediaRecorder(canvas.captureStream(30), {
    mimeType: type,
    videoBitsPerSecond: 8_000_000,
  });
  const parts = [];
  recorder.addEventListener("dataavailable", ({ data }) => parts.push(data));
  const ended = new Promise((done) => recorder.addEventListener("stop", done));
  recorder.start();
  let [last, share] = [performance.now(), 0];
  /** @type {Promise<void>} */
  const drawn = new Promise((done) => {
    const draw = (now) => {
      share = Math.min(
        1,
        share + Math.min(1 / VIDEO_FRAMES, Math.max(0, now - last) / (1000 * VIDEO_SECONDS)),
      );
      last = now;
      step(share);
      progress(share);
      if (share < 1) requestAnimationFrame(draw);
      else done();
    };
    requestAnimationFrame(draw);
  });
  await drawn;
  recorder.stop();
  await ended;
  return { blob: new Blob(parts, { type }), ending: type.startsWith("video/mp4") ? "mp4" : "webm" };
}

async function saveVideo(name, canvas, step, words) {
  const say = (text) => {
    words.textContent = text;
  };
  const video = await recordVideo(canvas, step, (share) =>
    say(`Recording: ${Math.round(100 * share)} %`),
  );
  if (!video) return say("This browser cannot record videos.");
  saveBlob(`${fileName()}-${name}.${video.ending}`, video.blob);
  return say(`Saved as ${fileName()}-${name}.${video.ending}.`);
}

// What the drawer "Save" of the relighting view offers.
class Takeaway {
  constructor(relighter, controls) {
    const box = relighter.figure.querySelector(".take");
    const words = box.querySelector(".take-words");
    const { light } = relighter.rig;
    const kinds = {
      whole: async () => {
        words.textContent = "Drawing …";
        saveBlob(`${fileName()}.png`, await wholePicture(relighter));
        words.textContent = `Saved as ${fileName()}.png.`;
      },
      sweep: async () => {
        controls.stopSweep();
        controls.pin(true);
        const { azimuth, elevation } = light;
        await saveVideo(
          "light",
          relighter.canvas,
          (share) => light.set(azimuth + 360 * share, elevation),
          words,
        );
      },
      embed: async () => {
        const address = new URL(location.href);
        address.search = "?embed";
        const code = `<iframe src="${address.href.replaceAll("&", "&amp;")}" width="800" height="600" style="border:0" allowfullscreen></iframe>`;
        const copied = await navigator.clipboard?.writeText(code).then(
          () => true,
          () => false,
        );
        words.textContent = copied
          ? "Copied. Put the page on your web site and adapt its address."
          : code;
      },
    };
    box.addEventListener("click", async (event) => {
      const kind = kinds[event.target.closest("[data-take]")?.dataset.take];
      if (!kind || this.busy) return;
      this.busy = true;
      await kind().finally(() => {
        this.busy = false;
      });
    });
  }
}
