// The contact sheet: a photograph, its light on the hemisphere, and what the method thought of it.

class ContactSheet {
  constructor(section, photographs, { relight }) {
    this.section = section;
    this.photographs = photographs;
    this.buttons = [...section.querySelectorAll(".thumb")];
    this.lights = [...section.querySelectorAll(".light-mark")];
    this.relight = relight;
    this.chosen = 0;
    for (const [i, button] of this.buttons.entries()) {
      button.addEventListener("pointerenter", (event) => {
        if (event.pointerType === "mouse") this.show(i);
      });
      button.addEventListener("focus", () => this.show(i));
      button.addEventListener("click", () => {
        this.choose(i);
        this.show(i);
      });
      button.addEventListener("keydown", (event) => this.walk(event, i));
    }
    section.querySelector(".thumbs").addEventListener("pointerleave", () => this.show(this.chosen));
    for (const [i, light] of this.lights.entries()) {
      light.addEventListener("pointerenter", () => this.show(i));
      light.addEventListener("click", () => this.choose(i));
    }
    const button = section.querySelector("[data-action=relight-here]");
    if (button)
      button.addEventListener("click", () => this.relight(this.photographs[this.shown].light));
    this.choose(0);
    this.show(0);
  }

  choose(i) {
    this.buttons[this.chosen].removeAttribute("aria-current");
    this.chosen = i;
    this.buttons[i].setAttribute("aria-current", "true");
    // One stop for the Tab key; arrows walk inside the sheet.
    for (const [j, button] of this.buttons.entries()) button.tabIndex = j === i ? 0 : -1;
  }

  walk(event, i) {
    const across = this.buttons.filter(
      (button) => button.offsetTop === this.buttons[0].offsetTop,
    ).length;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const next = this.buttons[i + step];
    if (!next) return;
    this.choose(i + step);
    next.focus();
  }

  show(i) {
    this.shown = i;
    const photo = this.photographs[i];
    const thumb = this.buttons[i].querySelector("img");
    const large = this.section.querySelector(".photo-large");
    large.src = thumb.src;
    large.alt = thumb.alt;
    this.section.querySelector(".photo-name").textContent = photo.name;
    this.section.querySelector(".photo-words").textContent = photo.words;
    const verdict = this.section.querySelector(".photo-verdict");
    verdict.src = photo.verdict;
    verdict.alt = verdict.alt.replace(/\d+$/, String(photo.number));
    for (const [j, light] of this.lights.entries()) light.classList.toggle("on", j === i);
    // Later siblings are painted on top.
    const light = this.lights[i];
    if (light) light.parentNode.append(light);
  }
}
