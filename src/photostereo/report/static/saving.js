// Files that the page makes itself.

function saveBlob(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function saveText(name, text, type) {
  saveBlob(name, new Blob([text], { type }));
}

// The view as it stands, with its scale bar, line and pins, at the resolution of the screen; a canvas.
function takeSnapshot(relighter, hud, { line, notes }) {
  const { stage, view, units, canvas } = relighter;
  stage.render(); // a canvas of WebGL keeps its picture only until it is shown
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = [canvas.width, canvas.height];
  const pen = picture.getContext("2d");
  pen.drawImage(canvas, 0, 0);
  pen.scale(stage.ratio, stage.ratio);
  pen.font = "12px system-ui, sans-serif";
  pen.lineWidth = 2;
  pen.shadowColor = "rgb(0 0 0 / 0.7)";
  pen.shadowBlur = 3;
  pen.strokeStyle = pen.fillStyle = "#ffd9a0";
  // As over the picture: dark, with a bright rim, to be seen on any ground.
  const disc = ([x, y], radius) => {
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = "rgb(24 25 29 / 0.85)";
    pen.fill();
    pen.stroke();
    pen.fillStyle = "#ffd9a0";
  };
  if (line) {
    pen.beginPath();
    for (const end of line) {
      const [x, y] = view.toCanvas(end);
      pen.lineTo(x, y);
    }
    pen.stroke();
    for (const end of line) disc(view.toCanvas(end), 4.5);
    const [from, to] = line.map((end) => view.toCanvas(end));
    const words = units.length(Math.hypot(line[1][0] - line[0][0], line[1][1] - line[0][1]));
    const middle = (from[0] + to[0]) / 2;
    const above = (from[1] + to[1]) / 2 - 9;
    pen.textAlign = "center";
    pen.lineWidth = 4;
    pen.strokeStyle = "rgb(0 0 0 / 0.75)";
    pen.fillStyle = "#ffffff";
    pen.strokeText(words, middle, above);
    pen.fillText(words, middle, above);
    pen.lineWidth = 2;
    pen.strokeStyle = "#ffd9a0";
    pen.fillStyle = "#ffd9a0";
  }
  pen.textAlign = "center";
  notes.forEach((note, i) => {
    const [x, y] = view.toCanvas([note.x, note.y]);
    disc([x, y], 11);
    pen.fillText(String(i + 1), x, y + 4);
  });
  pen.textAlign = "start";
  pen.strokeStyle = pen.fillStyle = "#ffffff";
  const length = hud.length();
  const [x, y] = [16, view.canvas[1] - 18];
  pen.beginPath();
  pen.moveTo(x, y - 5);
  pen.lineTo(x, y);
  pen.lineTo(x + length * view.scale, y);
  pen.lineTo(x + length * view.scale, y - 5);
  pen.stroke();
  pen.fillText(units.short(length), x + 4, y - 7);
  return picture;
}
