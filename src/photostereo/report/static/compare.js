// Two results on either side of a divider; without WebGL2, two still pictures.

class Comparison {
  constructor(figure, data, relighter) {
    this.figure = figure;
    this.data = data;
    this.relighter = relighter;
    this.chooseLeft = figure.querySelector("[data-side=left]");
    this.chooseRight = figure.querySelector("[data-side=right]");
    this.slider = figure.querySelector("[data-divider]");
    this.line = figure.querySelector(".divider");
    this.slider.addEventListener("input", () => this.move(Number(this.slider.value) / 1000));
    for (const choice of [this.chooseLeft, this.chooseRight]) choice.addEventListener("change", () => this.show());
    figure.querySelector("[data-action=swap]").addEventListener("click", () => {
      [this.chooseLeft.value, this.chooseRight.value] = [this.chooseRight.value, this.chooseLeft.value];
      this.show();
    });
    this.followHandle();
    this.move(0.5);
    this.show();
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
    this.slider.value = String(Math.round(split * 1000));
    this.slider.setAttribute("aria-valuetext", `${Math.round(split * 100)} % ${this.data.sets[this.chooseLeft.value].title}`);
    this.line.style.left = `${split * 100}%`;
    this.figure.querySelector(".still-left").style.clipPath = `inset(0 ${100 - split * 100}% 0 0)`;
    this.figure.querySelector(".still-right").style.clipPath = `inset(0 0 0 ${split * 100}%)`;
    if (this.relighter.works) {
      this.relighter.split = split;
      this.relighter.stage.changed();
    }
  }

  show() {
    const [left, right] = [this.chooseLeft.value, this.chooseRight.value];
    for (const [side, name] of [["left", left], ["right", right]]) {
      this.figure.querySelector(`.caption-${side}`).textContent = this.data.sets[name].title;
      const still = this.figure.querySelector(`.still-${side}`);
      if (!this.relighter.works) {
        still.src = document.getElementById(this.data.sets[name].still).src;
        still.alt = `Normal map by ${this.data.sets[name].title}`;
      }
    }
    if (this.relighter.works) this.relighter.show([left, right]);
    this.move(Number(this.slider.value) / 1000);
  }
}
