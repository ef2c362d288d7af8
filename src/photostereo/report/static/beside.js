// A photograph as it was taken, beside the relit view and at the same zoom; the light stands where it stood then.

class Beside {
  constructor(relighter, controls, photographs) {
    this.relighter = relighter;
    this.controls = controls;
    this.photographs = photographs;
    this.pane = relighter.figure.querySelector(".photo-pane");
    this.picture = this.pane.querySelector("img");
    this.choice = relighter.figure.querySelector("[data-photo]");
    this.choice.addEventListener("change", () => this.show(this.choice.value));
    relighter.view.watch(() => this.place());
  }

  show(number) {
    const on = number !== "";
    this.choice.value = number;
    this.pane.hidden = !on;
    this.relighter.figure.classList.toggle("beside", on);
    if (!on) return;
    const photo = this.photographs[Number(number)];
    /** @type {NodeListOf<HTMLImageElement>} */
    const thumbs = document.querySelectorAll(".thumb img");
    const thumb = thumbs[Number(number)];
    this.picture.src = thumb.src;
    this.picture.alt = photo.name;
    this.pane.querySelector(".caption").textContent = photo.name;
    this.controls.shineFrom(photo.light);
    this.place();
  }

  // Both panes have the same size and the same place of the object in their middle.
  place() {
    if (this.pane.hidden) return;
    const { view, data } = this.relighter;
    this.picture.style.width = `${data.width * view.scale}px`;
    this.picture.style.height = `${data.height * view.scale}px`;
    this.picture.style.left = `${this.pane.clientWidth / 2 - view.x * view.scale}px`;
    this.picture.style.top = `${view.canvas[1] / 2 - view.y * view.scale}px`;
  }
}
