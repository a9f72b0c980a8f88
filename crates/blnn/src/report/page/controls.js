// How readers move the map, find nodes and read about them.

function listenToPointers(map) {
  const canvas = element("points");
  const fingers = new Map();
  let dragged = 0;
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    if (fingers.size === 0) dragged = 0;
    fingers.set(event.pointerId, spot(event));
    map.crosshair = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = spot(event);
    if (!fingers.has(event.pointerId)) {
      point(map, now, event);
      return;
    }
    const before = [...fingers.values()];
    const last = fingers.get(event.pointerId);
    fingers.set(event.pointerId, now);
    dragged += Math.hypot(now[0] - last[0], now[1] - last[1]);
    if (dragged < 4) return;
    canvas.classList.add("dragging");
    hideTip(map);
    if (fingers.size === 1) map.move(now[0] - last[0], now[1] - last[1]);
    else pinch(map, before, [...fingers.values()]);
  });
  const end = (event) => {
    const known = fingers.delete(event.pointerId);
    canvas.classList.remove("dragging");
    if (event.type !== "pointerup" || !known || dragged >= 4) return;
    const node = map.nodeAt(...spot(event), event.pointerType === "touch" ? 22 : 10);
    map.choose(node, false);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => hideTip(map));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 24 : 1;
    map.zoom(Math.exp(-event.deltaY * unit * 0.0016), ...spot(event));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => map.zoom(2, ...spot(event)));
}

function pinch(map, before, after) {
  const middle = (two) => [(two[0][0] + two[1][0]) / 2, (two[0][1] + two[1][1]) / 2];
  const gap = (two) => Math.max(Math.hypot(two[0][0] - two[1][0], two[0][1] - two[1][1]), 1);
  const [from, to] = [middle(before), middle(after)];
  map.move(to[0] - from[0], to[1] - from[1]);
  map.zoom(gap(after) / gap(before), ...to);
}

function hideTip(map) {
  map.hover(-1);
  element("tip").hidden = true;
  element("points").classList.remove("over");
}

/// Shows what is under the pointer.
function point(map, [px, py], event) {
  if (event.pointerType === "touch") return;
  const node = map.nodeAt(px, py, 9);
  if (node < 0) {
    hideTip(map);
    return;
  }
  map.hover(node);
  element("points").classList.add("over");
  const tip = element("tip");
  tip.replaceChildren(make("b", "", map.id(node)));
  map.colourings.forEach((colouring) => tip.append(make("div", "", labelled(map, colouring, node))));
  tip.hidden = false;
  const [x, y] = map.place(node);
  tip.style.left = `${Math.min(Math.max(x + 14, 4), map.width - tip.offsetWidth - 4)}px`;
  const below = y + 14 + tip.offsetHeight < map.height;
  tip.style.top = `${below ? y + 14 : y - 14 - tip.offsetHeight}px`;
}

/// "class Theory", "degree 12"; a category that names itself is not named twice.
function labelled(map, colouring, node) {
  const value = map.describe(colouring, node);
  return value.startsWith(colouring.name) ? value : `${colouring.name} ${value}`;
}

const STEP = 60;
const KEYS = {
  ArrowLeft: (map) => map.move(STEP, 0),
  ArrowRight: (map) => map.move(-STEP, 0),
  ArrowUp: (map) => map.move(0, STEP),
  ArrowDown: (map) => map.move(0, -STEP),
  "+": (map) => map.zoom(1.4),
  "=": (map) => map.zoom(1.4),
  "-": (map) => map.zoom(1 / 1.4),
  0: (map) => map.showAll(),
  Enter: (map) => map.choose(map.nodeAt(map.width / 2, map.height / 2, map.width), false),
  Escape: (map) => map.choose(-1, false),
};

function listenToKeys(map) {
  const canvas = element("points");
  canvas.addEventListener("keydown", (event) => {
    const action = KEYS[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    map.crosshair = true;
    action(map);
    map.redraw();
  });
  canvas.addEventListener("blur", () => {
    map.crosshair = false;
    map.redraw();
  });
}

function showColourings(map) {
  const group = element("colourings");
  const buttons = map.colourings.map((colouring, index) => {
    const button = make("button", "", colouring.name[0].toUpperCase() + colouring.name.slice(1));
    button.type = "button";
    button.addEventListener("click", () => choose(index));
    return button;
  });
  const choose = (index) => {
    map.setColouring(index);
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", at === index));
    showLegend(map);
    showChosen(map);
  };
  group.append(...buttons);
  group.hidden = buttons.length === 0;
  if (buttons.length) choose(0);
}

function showLegend(map) {
  const legend = element("legend");
  const { colouring } = map;
  legend.replaceChildren();
  if (!colouring) return;
  if (!colouring.categories) {
    legend.append(...rampLegend(map));
    return;
  }
  const counts = new Uint32Array(colouring.categories.length);
  colouring.values.forEach((value) => { counts[value] += 1; });
  colouring.categories.forEach((name, value) => {
    const button = make("button");
    button.type = "button";
    button.title = "Show or fade these nodes";
    button.setAttribute("aria-pressed", !map.hidden.has(value));
    const dot = make("span", "dot");
    dot.style.background = map.hexes[value];
    button.append(dot, make("span", "name", name), make("span", "count", grouped(counts[value])));
    button.addEventListener("click", () => {
      map.toggle(value);
      button.setAttribute("aria-pressed", !map.hidden.has(value));
    });
    legend.append(button);
  });
}

function rampLegend(map) {
  const ramp = make("div", "ramp");
  const stops = [0, 0.25, 0.5, 0.75, 1].map((share) => rampColour(share));
  ramp.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const ends = make("div", "ramp-ends");
  const middle = Math.round(Math.expm1(Math.log1p(map.largest) / 2));
  const texts = [`${map.colouring.name} 0`, grouped(middle), grouped(map.largest)];
  ends.append(...texts.map((text) => make("span", "", text)));
  return [ramp, ends];
}

/// The chosen node and its nearest neighbours.
function showChosen(map) {
  const box = element("chosen");
  const node = map.chosen;
  if (node < 0) {
    box.replaceChildren(make("p", "hint", "Choose a node, on the map or by its id, to see the ten nearest to it."));
    return;
  }
  const facts = map.colourings.map((colouring) => labelled(map, colouring, node)).join(" · ");
  const list = make("ol", "neighbours");
  list.setAttribute("aria-label", "Nearest nodes by cosine");
  map.nearest(node).forEach((near) => list.append(neighbourRow(map, near)));
  box.replaceChildren(make("h3", "", map.id(node)), make("p", "", facts), list);
  box.scrollTop = 0;
}

function neighbourRow(map, { node, cosine }) {
  const button = make("button");
  button.type = "button";
  const dot = make("span", "dot");
  dot.style.background = map.nodeColour(node);
  const track = make("span", "track");
  const bar = make("i");
  bar.style.width = `${Math.max(cosine, 0) * 100}%`;
  track.append(bar);
  const facts = map.colourings.map((colouring) => labelled(map, colouring, node)).join(", ");
  button.title = `${map.id(node)}: ${facts}`;
  button.append(dot, make("span", "name", map.id(node)), track, make("span", "value", cosine.toFixed(3)));
  button.addEventListener("click", () => map.choose(node, true));
  button.addEventListener("pointerenter", () => map.hover(node));
  button.addEventListener("pointerleave", () => map.hover(-1));
  const row = make("li");
  row.append(button);
  return row;
}

/// The best matches first: the very id, then ids that start so, then ids that contain it.
function findNodes(map, wanted, most) {
  const text = wanted.trim().toLowerCase();
  const groups = [[], [], []];
  if (!text) return [];
  for (let node = 0; node < map.count; node += 1) {
    const at = map.id(node).toLowerCase().indexOf(text);
    if (at < 0) continue;
    const exact = map.id(node).length === text.length;
    const group = groups[exact ? 0 : at === 0 ? 1 : 2];
    if (group.length < most) group.push(node);
  }
  return groups.flat().slice(0, most);
}

function listenToSearch(map) {
  const [input, list] = [element("search"), element("found")];
  let [found, active] = [[], 0];
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const take = (node) => {
    close();
    input.value = map.id(node);
    map.choose(node, true);
  };
  const mark = () => {
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", at === active));
    if (found.length) input.setAttribute("aria-activedescendant", `found-${active}`);
    list.children[active]?.scrollIntoView({ block: "nearest" });
  };
  const update = () => {
    found = findNodes(map, input.value, 8);
    active = 0;
    const items = found.map((node, at) => foundItem(map, node, at, take));
    if (!items.length) items.push(make("li", "none", "no such node"));
    list.replaceChildren(...items);
    list.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark();
  };
  input.addEventListener("input", update);
  input.addEventListener("blur", () => setTimeout(close, 150));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && found.length && !list.hidden) take(found[active]);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !found.length) return;
    event.preventDefault();
    active = (active + step + found.length) % found.length;
    mark();
  });
}

function foundItem(map, node, at, take) {
  const item = make("li");
  item.id = `found-${at}`;
  item.setAttribute("role", "option");
  item.append(make("span", "", map.id(node)));
  if (map.colouring) item.append(make("small", "", labelled(map, map.colouring, node)));
  item.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    take(node);
  });
  return item;
}
