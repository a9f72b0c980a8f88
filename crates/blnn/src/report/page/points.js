// Many points in one picture, quickly: discs are blended straight into the pixels of a canvas, so
// that a frame costs the same few milliseconds whatever the graphics card.

/// How strongly a disc covers each pixel around its middle, 0 to 256.
function discMask(radius) {
  const reach = Math.ceil(radius + 0.5);
  const cells = [];
  for (let dy = -reach; dy <= reach; dy += 1) {
    for (let dx = -reach; dx <= reach; dx += 1) {
      const cover = Math.min(Math.max(radius + 0.5 - Math.hypot(dx, dy), 0), 1);
      if (cover > 0.02) cells.push({ dx, dy, cover: Math.round(256 * cover) });
    }
  }
  return { reach, cells };
}

/// A colour as one number in the order of a canvas's bytes.
function packColour(hex) {
  const part = (at) => parseInt(hex.slice(at, at + 2), 16);
  return (0xff000000 | (part(5) << 16) | (part(3) << 8) | part(1)) >>> 0;
}

class PointPicture {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.masks = new Map();
  }

  resize(width, height) {
    if (this.canvas.width === width && this.canvas.height === height && this.pixels) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  clear(hex) {
    this.pixels.fill(packColour(hex));
  }

  mask(radius, opacity) {
    const key = `${radius.toFixed(2)} ${opacity}`;
    if (!this.masks.has(key)) {
      const { reach, cells } = discMask(radius);
      const width = this.canvas.width;
      const offsets = Int32Array.from(cells, (cell) => cell.dy * width + cell.dx);
      const covers = Int32Array.from(cells, (cell) => Math.round(cell.cover * opacity));
      this.masks.set(key, { reach, offsets, covers, width });
    }
    const mask = this.masks.get(key);
    if (mask.width === this.canvas.width) return mask;
    this.masks.delete(key);
    return this.mask(radius, opacity);
  }

  /// Discs at the places of `which`; `at(i)` writes the place of point `i` into `spot`.
  discs(which, view, colours, values, radius, opacity) {
    const { reach, offsets, covers } = this.mask(radius, opacity);
    const { pixels } = this;
    const [right, bottom] = [this.canvas.width - 1 - reach, this.canvas.height - 1 - reach];
    const { scale, left, top, x, y } = view;
    for (let n = 0; n < which.length; n += 1) {
      const i = which[n];
      const px = Math.round(left + scale * x[i]);
      const py = Math.round(top - scale * y[i]);
      if (px < reach || py < reach || px > right || py > bottom) continue;
      this.blend(pixels, py * this.canvas.width + px, offsets, covers, colours[values[i]]);
    }
  }

  blend(pixels, middle, offsets, covers, source) {
    const sourceRedBlue = source & 0xff00ff;
    const sourceGreen = source & 0x00ff00;
    for (let k = 0; k < offsets.length; k += 1) {
      const at = middle + offsets[k];
      const below = pixels[at];
      const redBlue = below & 0xff00ff;
      const green = below & 0x00ff00;
      const cover = covers[k];
      const mixedRedBlue = (redBlue + (Math.imul(sourceRedBlue - redBlue, cover) >> 8)) & 0xff00ff;
      const mixedGreen = (green + (Math.imul(sourceGreen - green, cover) >> 8)) & 0x00ff00;
      pixels[at] = 0xff000000 | mixedRedBlue | mixedGreen;
    }
  }

  show() {
    this.context.putImageData(this.image, 0, 0);
  }
}

/// Points sorted into squares, to find the one under a finger at once.
class PointGrid {
  constructor(x, y) {
    this.x = x;
    this.y = y;
    this.side = 128;
    this.cell = 65536 / this.side;
    const count = new Uint32Array(this.side * this.side + 1);
    const square = (i) => Math.floor(y[i] / this.cell) * this.side + Math.floor(x[i] / this.cell);
    for (let i = 0; i < x.length; i += 1) count[square(i) + 1] += 1;
    for (let s = 0; s < this.side * this.side; s += 1) count[s + 1] += count[s];
    this.starts = count.slice();
    this.members = new Uint32Array(x.length);
    for (let i = 0; i < x.length; i += 1) this.members[count[square(i)]++] = i;
  }

  /// The nearest point within `reach` that `allowed` lets pass, or −1.
  nearest(px, py, reach, allowed) {
    const clamp = (v) => Math.min(Math.max(Math.floor(v / this.cell), 0), this.side - 1);
    let [best, bestDistance] = [-1, reach * reach];
    for (let row = clamp(py - reach); row <= clamp(py + reach); row += 1) {
      const first = this.starts[row * this.side + clamp(px - reach)];
      const end = this.starts[row * this.side + clamp(px + reach) + 1];
      for (let m = first; m < end; m += 1) {
        const i = this.members[m];
        const distance = (this.x[i] - px) ** 2 + (this.y[i] - py) ** 2;
        if (distance <= bestDistance && allowed(i)) [best, bestDistance] = [i, distance];
      }
    }
    return best;
  }
}
