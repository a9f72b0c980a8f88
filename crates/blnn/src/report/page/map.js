// The map: all nodes on a plane that can be moved, zoomed, searched and asked.

const LARGEST_ZOOM = 400;

class NodeMap {
  constructor(map) {
    this.map = map;
    this.x = unpack(map.x);
    this.y = unpack(map.y);
    this.count = this.x.length;
    this.neighbours = unpack(map.neighbours);
    this.cosines = unpack(map.cosines);
    this.perNode = this.count ? this.neighbours.length / this.count : 0;
    this.colourings = map.colourings.map((colouring) => ({ ...colouring, values: unpack(colouring.values) }));
    this.grid = new PointGrid(this.x, this.y);
    this.picture = new PointPicture(element("points"));
    this.marks = element("marks").getContext("2d");
    this.hidden = new Set();
    this.chosen = -1;
    this.hovered = -1;
    this.listeners = [];
    this.middle = middleOf(this.x, this.y);
    this.setColouring(0);
  }

  id(node) {
    return this.map.ids ? this.map.ids[node] : String(node);
  }

  nearest(node) {
    const list = [];
    for (let k = node * this.perNode; k < (node + 1) * this.perNode; k += 1) {
      list.push({ node: this.neighbours[k], cosine: (this.cosines[k] / 65535) * 2 - 1 });
    }
    return list;
  }

  /// What a colouring says of a node.
  describe(colouring, node) {
    const value = colouring.values[node];
    return colouring.categories ? colouring.categories[value] : grouped(value);
  }

  setColouring(index) {
    this.colouring = this.colourings[index];
    this.hidden.clear();
    this.paint();
  }

  /// Works out the colour of each value, and which nodes are shown faintly.
  paint() {
    const { colouring } = this;
    this.largest = colouring ? colouring.values.reduce((most, value) => Math.max(most, value), 0) : 0;
    const hexes = [];
    for (let value = 0; value <= this.largest; value += 1) hexes.push(this.valueColour(value));
    this.hexes = hexes;
    this.packed = Uint32Array.from(hexes, packColour);
    const [faint, clear] = [[], []];
    for (let i = 0; i < this.count; i += 1) (this.isHidden(i) ? faint : clear).push(i);
    this.faint = Uint32Array.from(faint);
    this.clear = Uint32Array.from(clear);
    this.redraw();
  }

  valueColour(value) {
    if (!this.colouring) return colour("accent");
    if (this.colouring.categories) return categoryColour(value);
    // Degrees spread over orders of magnitude.
    return rampColour(Math.log1p(value) / Math.log1p(Math.max(this.largest, 1)));
  }

  nodeColour(node) {
    return this.hexes[this.colouring ? this.colouring.values[node] : 0];
  }

  isHidden(node) {
    return this.hidden.size > 0 && this.hidden.has(this.colouring.values[node]);
  }

  toggle(value) {
    if (!this.hidden.delete(value)) this.hidden.add(value);
    this.paint();
  }

  /// Fits the picture to its frame; the part that was in view stays in view.
  resize() {
    const box = element("view").getBoundingClientRect();
    if (box.width === 0) return;
    this.density = window.devicePixelRatio || 1;
    const [width, height] = [box.width, box.height].map((size) => Math.round(size * this.density));
    [this.width, this.height] = [box.width, box.height];
    this.picture.resize(width, height);
    this.marks.canvas.width = width;
    this.marks.canvas.height = height;
    if (this.scale === undefined) this.showAll();
    else this.redraw();
  }

  showAll() {
    const room = Math.min((this.width - 48) / this.middle.width, (this.height - 48) / this.middle.height);
    this.fitted = Math.min(room, 1);
    this.lookAt(this.middle.x, this.middle.y, this.fitted);
  }

  lookAt(x, y, scale) {
    this.scale = scale;
    this.left = this.width / 2 - x * scale;
    this.top = this.height / 2 + y * scale;
    this.redraw();
  }

  move(dx, dy) {
    this.left += dx;
    this.top += dy;
    this.redraw();
  }

  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, this.fitted / 4), this.fitted * LARGEST_ZOOM);
    const change = scale / this.scale;
    this.left = px - (px - this.left) * change;
    this.top = py - (py - this.top) * change;
    this.scale = scale;
    this.redraw();
  }

  place(node) {
    return [this.left + this.scale * this.x[node], this.top - this.scale * this.y[node]];
  }

  nodeAt(px, py, reach) {
    const [x, y] = [(px - this.left) / this.scale, (this.top - py) / this.scale];
    return this.grid.nearest(x, y, reach / this.scale, (node) => !this.isHidden(node));
  }

  /// Few nodes get large discs, many small ones; zooming in lets them grow a little.
  radius() {
    const base = Math.min(Math.max(150 / Math.sqrt(this.count + 1), 1.2), 4.5);
    return base * Math.min(Math.max((this.scale / this.fitted) ** 0.22, 0.8), 2.4);
  }

  redraw() {
    if (this.scale === undefined || this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      this.draw();
    });
  }

  draw() {
    const { density } = this;
    const view = { scale: this.scale * density, left: this.left * density, top: this.top * density, x: this.x, y: this.y };
    const radius = this.radius() * density;
    const values = this.colouring ? this.colouring.values : new Uint8Array(this.count);
    const dim = new Uint32Array(this.packed.length).fill(packColour(colour("dim")));
    const focused = this.chosen >= 0;
    this.picture.clear(colour("stage"));
    this.picture.discs(this.faint, view, dim, values, radius, 0.8);
    this.picture.discs(this.clear, view, this.packed, values, radius, focused ? 0.45 : 0.85);
    this.picture.show();
    this.drawMarks();
  }

  drawMarks() {
    const pen = this.marks;
    pen.setTransform(this.density, 0, 0, this.density, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    if (this.chosen >= 0) this.drawNeighbours(pen);
    if (this.hovered >= 0 && this.hovered !== this.chosen) this.ring(pen, this.hovered, 3, 2);
    if (this.crosshair) this.drawCrosshair(pen);
  }

  drawNeighbours(pen) {
    const from = this.place(this.chosen);
    pen.strokeStyle = colour("soft");
    pen.globalAlpha = 0.55;
    pen.lineWidth = 1;
    const near = this.nearest(this.chosen);
    near.forEach(({ node }) => {
      pen.beginPath();
      pen.moveTo(...from);
      pen.lineTo(...this.place(node));
      pen.stroke();
    });
    pen.globalAlpha = 1;
    near.forEach(({ node }) => this.ring(pen, node, 1.5, 1.5));
    this.ring(pen, this.chosen, 3.5, 2.5);
  }

  ring(pen, node, more, width) {
    const [x, y] = this.place(node);
    pen.beginPath();
    pen.arc(x, y, this.radius() + more, 0, 2 * Math.PI);
    pen.fillStyle = this.nodeColour(node);
    pen.fill();
    pen.lineWidth = width;
    pen.strokeStyle = colour("ink");
    pen.stroke();
  }

  drawCrosshair(pen) {
    const [x, y] = [this.width / 2, this.height / 2];
    pen.strokeStyle = colour("faint");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x - 12, y);
    pen.lineTo(x + 12, y);
    pen.moveTo(x, y - 12);
    pen.lineTo(x, y + 12);
    pen.stroke();
  }

  choose(node, bringIntoView) {
    this.chosen = node;
    if (node >= 0 && bringIntoView) this.bringIntoView(node);
    this.listeners.forEach((listener) => listener(node));
    this.redraw();
  }

  bringIntoView(node) {
    const [x, y] = this.place(node);
    const inside = x > 30 && y > 30 && x < this.width - 30 && y < this.height - 30;
    if (!inside) this.lookAt(this.x[node], this.y[node], this.scale);
  }

  hover(node) {
    if (node === this.hovered) return;
    this.hovered = node;
    if (!this.due) this.drawMarks();
  }

  /// The picture as SVG: the part in view with its legend below.
  toSvg() {
    const escape = (text) => text.replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
    const entries = this.colouring?.categories ?? [];
    const lines = legendLines(entries, this.width);
    const height = this.height + 14 + 20 * lines.count;
    const parts = [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${height}" viewBox="0 0 ${this.width} ${height}" font-family="sans-serif" font-size="13">`,
      `<rect width="100%" height="100%" fill="${colour("stage")}"/>`,
      `<svg width="${this.width}" height="${this.height}"><g fill-opacity="0.85">`,
    ];
    this.hexes.forEach((hex, value) => parts.push(this.svgDiscs(hex, value)));
    parts.push("</g></svg>");
    lines.entries.forEach(({ x, line, name }, value) => {
      const y = this.height + 16 + 20 * line;
      parts.push(`<circle cx="${x + 6}" cy="${y - 4}" r="5" fill="${this.hexes[value]}"/>`);
      parts.push(`<text x="${x + 16}" y="${y}" fill="${colour("ink")}">${escape(name)}</text>`);
    });
    parts.push("</svg>");
    return { svg: parts.join("\n"), width: this.width, height };
  }

  svgDiscs(hex, value) {
    const radius = this.radius().toFixed(1);
    const discs = [];
    for (const i of this.clear) {
      if (this.colouring && this.colouring.values[i] !== value) continue;
      const [x, y] = this.place(i);
      if (x < -5 || y < -5 || x > this.width + 5 || y > this.height + 5) continue;
      discs.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${radius}"/>`);
    }
    return discs.length ? `<g fill="${hex}">${discs.join("")}</g>` : "";
  }
}

/// Where the nodes are.
function middleOf(x, y) {
  const most = (values) => values.reduce((a, b) => Math.max(a, b), 1);
  const [width, height] = [most(x), most(y)];
  return { x: width / 2, y: height / 2, width, height };
}

/// Names in lines of the given width; letters count as seven and a half pixels.
function legendLines(names, width) {
  const entries = [];
  let [x, line] = [10, 0];
  names.forEach((name) => {
    const room = 34 + 7.5 * name.length;
    if (x + room > width && x > 10) [x, line] = [10, line + 1];
    entries.push({ x, line, name });
    x += room;
  });
  return { entries, count: names.length ? line + 1 : 0 };
}
