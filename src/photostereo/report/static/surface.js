// The surface in three dimensions.

class SurfaceView {
  constructor(figure, { grid, name, pyramid }) {
    this.figure = figure;
    this.canvas = figure.querySelector("canvas");
    this.look = { paint: "albedo", wire: false, relief: 1 };
    this.grid = grid;
    this.name = name;
    this.pyramid = pyramid;
    this.mesh = buildHeightfield(grid);
    this.camera = new OrbitCamera(this.mesh.radius);
    this.stage = new Stage(this.canvas, {
      build: (gl) => this.build(gl),
      draw: (gl, w, h) => this.draw(gl, w, h),
      antialias: true,
    });
    if (!this.stage.gl) return;
    steerCamera(this.canvas, this.camera, () => this.stage.changed());
    this.followPanel();
  }

  get works() {
    return Boolean(this.stage.gl);
  }

  async build(gl) {
    this.program = makeProgram(gl, SURFACE_VERTEX, SURFACE_FRAGMENT);
    this.backdrop = makeProgram(gl, FULL_VERTEX, BACKDROP_FRAGMENT);
    this.nothing = gl.createVertexArray();
    this.upload(gl);
    this.store = new TileStore(gl, this.pyramid, () => {});
    this.copier = makeProgram(gl, FULL_VERTEX, COPY_FRAGMENT);
    this.deriver = new Deriver(gl);
    this.patch = new Patch(gl, this.store, this.copier);
    await this.dress(gl);
  }

  // Normals and colors of the whole object, at the finest level of the page that one texture can hold.
  async dress(gl) {
    const most = Math.min(4096, gl.getParameter(gl.MAX_TEXTURE_SIZE));
    let level = this.pyramid.held;
    while (level + 1 < this.pyramid.levels && Math.max(...this.pyramid.size(level)) > most)
      level += 1;
    const [wide, high] = this.pyramid.size(level);
    const whole = () =>
      this.patch.gather(this.name, level, [0, 0, wide, high], ["normals", "albedo"]);
    gl.bindVertexArray(this.nothing);
    whole();
    await Promise.all([...this.store.tiles.values()].map((tile) => tile.loaded));
    gl.bindVertexArray(this.nothing);
    whole();
    const { normals, albedo } = this.patch.targets;
    this.textures = {
      normals: normals.texture,
      albedo: albedo.texture,
      cover: this.deriver.cover(this.patch),
    };
    for (const texture of [this.textures.albedo, this.textures.cover]) {
      gl.bindTexture(gl.TEXTURE_2D, texture);
      for (const name of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER])
        gl.texParameteri(gl.TEXTURE_2D, name, gl.LINEAR);
    }
    this.share = [
      this.pyramid.width / (wide * 2 ** level),
      this.pyramid.height / (high * 2 ** level),
    ];
  }

  upload(gl) {
    this.vertices = gl.createVertexArray();
    gl.bindVertexArray(this.vertices);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, this.mesh.places, gl.STATIC_DRAW);
    for (const [name, size, offset] of [
      ["aPosition", 3, 0],
      ["aUv", 2, 12],
      ["aCell", 2, 20],
    ]) {
      const place = gl.getAttribLocation(this.program.program, name);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, gl.FLOAT, false, 28, offset);
    }
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, this.mesh.triangles, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
  }

  draw(gl, width, height) {
    const { program, places } = this.program;
    const { camera, look } = this;
    gl.viewport(0, 0, width, height);
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.SAMPLE_ALPHA_TO_COVERAGE);
    gl.useProgram(this.backdrop.program);
    gl.bindVertexArray(this.nothing);
    gl.uniform2f(this.backdrop.places.uCanvas, width, height);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.SAMPLE_ALPHA_TO_COVERAGE);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.useProgram(program);
    gl.bindVertexArray(this.vertices);
    gl.uniformMatrix4fv(places.uProject, false, camera.matrix(width / height));
    gl.uniform3fv(places.uEye, camera.eye());
    const unit = (v) => v.map((value) => value / Math.hypot(...v));
    // The key light hangs over the viewer's left shoulder: turning the object moves the shading.
    gl.uniform3fv(places.uKey, unit(camera.turned([-0.55, 0.6, 0.75])));
    gl.uniform3fv(places.uFill, unit(camera.turned([0.6, -0.2, 0.6])));
    gl.uniform1f(places.uRelief, look.relief);
    gl.uniform2fv(places.uShare, this.share);
    gl.uniform1i(places.uClay, look.paint === "clay" ? 1 : 0);
    gl.uniform1i(places.uWire, look.wire ? 1 : 0);
    bindTexture(gl, 0, this.textures.normals, places.uNormals);
    bindTexture(gl, 1, this.textures.albedo, places.uAlbedo);
    bindTexture(gl, 2, this.textures.cover, places.uCover);
    gl.drawElements(gl.TRIANGLES, this.mesh.triangles.length, gl.UNSIGNED_INT, 0);
    gl.bindVertexArray(null);
  }

  followPanel() {
    const panel = this.figure.querySelector("form.panel");
    panel.addEventListener("submit", (event) => event.preventDefault());
    panel.addEventListener("input", ({ target }) => {
      if (target.dataset.surface === "paint") this.look.paint = target.value;
      else if (target.dataset.surface === "wire") this.look.wire = target.checked;
      else if (target.dataset.surface === "relief") {
        this.look.relief = Number(target.value);
        this.figure.querySelector("[data-value=relief]").textContent = `${this.look.relief}×`;
      }
      this.stage.changed();
    });
    panel.addEventListener("click", (event) => {
      const turn = { left: [-0.3, 0], right: [0.3, 0], up: [0, 0.3], down: [0, -0.3] };
      const action = event.target.closest("button")?.dataset.camera;
      if (!action) return;
      if (turn[action]) this.camera.orbit(...turn[action]);
      else if (action === "nearer") this.camera.zoom(0.8);
      else if (action === "farther") this.camera.zoom(1.25);
      else if (action === "front") this.camera.face();
      else this.camera.reset();
      this.stage.changed();
    });
  }

  // Another result on the same frame.
  async replace({ grid, name }) {
    this.grid = grid;
    this.name = name;
    this.mesh = buildHeightfield(grid);
    await this.build(this.stage.gl);
    this.stage.changed();
  }
}
