// Two results under one light: on either side of a divider, or one after the other; without WebGL2, two stills.

const BLINK = 700;

class Comparison {
  constructor(figure, data, relighter) {
    this.figure = figure;
    this.data = data;
    this.relighter = relighter;
    this.chooseLeft = figure.querySelector("[data-side=left]");
    this.chooseRight = figure.querySelector("[data-side=right]");
    this.slider = figure.querySelector("[data-divider]");
    this.line = figure.querySelector(".divider");
    this.blinker = figure.querySelector("[data-action=blink]");
    this.slider.addEventListener("input", () => {
      this.stopBlink();
      this.move(Number(this.slider.value) / 1000);
    });
    for (const choice of [this.chooseLeft, this.chooseRight])
      choice.addEventListener("change", () => this.show());
    figure
      .querySelector("[data-action=swap]")
      .addEventListener("click", () =>
        this.choose([this.chooseRight.value, this.chooseLeft.value]),
      );
    this.blinker.addEventListener("click", () => (this.timer ? this.stopBlink() : this.blink()));
    figure.addEventListener("look", () => this.mark());
    this.followHandle();
    this.move(0.5);
    this.show();
  }

  choose([left, right]) {
    [this.chooseLeft.value, this.chooseRight.value] = [left, right];
    this.show();
  }

  // The whole canvas shows one, then the other: what differs jumps.
  blink() {
    this.before = this.split;
    this.blinker.setAttribute("aria-pressed", "true");
    this.figure.classList.add("blinking");
    this.move(1);
    this.timer = setInterval(() => this.move(this.split > 0.5 ? 0 : 1), BLINK);
  }

  stopBlink() {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    this.blinker.setAttribute("aria-pressed", "false");
    this.figure.classList.remove("blinking");
    this.move(this.before);
  }

  followHandle() {
    const stage = this.figure.querySelector(".stage");
    const follow = (event) => {
      const box = stage.getBoundingClientRect();
      this.move((event.clientX - box.left) / box.width);
    };
    this.line.addEventListener("pointerdown", (event) => {
      this.line.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.slider.focus({ preventScroll: true });
      follow(event);
    });
    this.line.addEventListener("pointermove", (event) => {
      if (event.buttons) follow(event);
    });
  }

  move(share) {
    const split = Math.min(1, Math.max(0, share));
    this.split = split;
    this.slider.value = String(Math.round(split * 1000));
    this.slider.setAttribute(
      "aria-valuetext",
      `${Math.round(split * 100)} % ${this.data.sets[this.chooseLeft.value].title}`,
    );
    this.line.style.left = `${split * 100}%`;
    this.figure.querySelector(".still-left").style.clipPath = `inset(0 ${100 - split * 100}% 0 0)`;
    this.figure.querySelector(".still-right").style.clipPath = `inset(0 0 0 ${split * 100}%)`;
    this.mark();
    if (this.relighter.works) {
      this.relighter.split = split;
      this.relighter.stage.changed();
    }
  }

  // Only the names of what is to be seen; one map of a difference has no sides.
  mark() {
    const whole = this.relighter.look.mode === "difference";
    this.figure.classList.toggle("undivided", whole);
    this.figure.querySelector(".caption-left").hidden = !whole && this.split <= 0;
    this.figure.querySelector(".caption-right").hidden = !whole && this.split >= 1;
  }

  show() {
    const [left, right] = [this.chooseLeft.value, this.chooseRight.value];
    for (const [side, name] of [
      ["left", left],
      ["right", right],
    ]) {
      this.figure.querySelector(`.caption-${side}`).textContent = this.data.sets[name].title;
      const still = this.figure.querySelector(`.still-${side}`);
      if (!this.relighter.works) {
        const source = document.getElementById(this.data.sets[name].still);
        still.src = /** @type {HTMLImageElement} */ (source).src;
        still.alt = `Normal map by ${this.data.sets[name].title}`;
      }
    }
    if (this.relighter.works) this.relighter.show([left, right]);
    this.figure.dispatchEvent(new CustomEvent("sides"));
    this.move(this.split);
  }
}
