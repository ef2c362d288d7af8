// A photograph as it was taken, beside the relit view and at the same zoom; the light stands where it stood then.

class Beside {
  constructor(relighter, controls, photographs) {
    Object.assign(this, { relighter, controls, photographs });
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
    const thumb = document.querySelectorAll(".thumb img")[Number(number)];
    Object.assign(this.picture, { src: thumb.src, alt: photo.name });
    this.pane.querySelector(".caption").textContent = photo.name;
    this.controls.shineFrom(photo.light);
    this.place();
  }

  // Both panes have the same size and the same place of the object in their middle.
  place() {
    if (this.pane.hidden) return;
    const { view, data } = this.relighter;
    Object.assign(this.picture.style, {
      width: `${data.width * view.scale}px`,
      height: `${data.height * view.scale}px`,
      left: `${this.pane.clientWidth / 2 - view.x * view.scale}px`,
      top: `${view.canvas[1] / 2 - view.y * view.scale}px`,
    });
  }
}
