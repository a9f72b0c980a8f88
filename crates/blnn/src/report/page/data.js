// What the page shows, and small helpers that every part uses.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);

/// A new element with text; texts are never read as HTML.
function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const ARRAYS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

/// Packed whole numbers as a typed array.
function unpack({ width, base64 }) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[width](bytes.buffer);
}

const grouped = (number) => number.toLocaleString("en-US");

/// Hands a file to the reader.
function save(blob, name) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/// A picture as SVG text, saved as it is or drawn at twice its size.
function saveSvg(svg, name) {
  save(new Blob([svg], { type: "image/svg+xml" }), `${name}.svg`);
}

function savePng(svg, width, height, name) {
  const picture = new Image();
  picture.onload = () => {
    const canvas = make("canvas");
    canvas.width = 2 * width;
    canvas.height = 2 * height;
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
  };
  // A page opened from a disk may not read back pictures from a blob; from its own text it may.
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}

/// The start of a file name made of the page's title.
const fileName = (part) => `${data.title} ${part}`.toLowerCase().replace(/[^a-z0-9]+/g, "-");
