// Puts the page together.

function showHead() {
  element("title").textContent = data.title;
  element("subtitle").textContent = data.subtitle;
  data.warnings.forEach((text) => element("warnings").append(make("div", "warning", text)));
  data.figures.forEach(({ label, value, note }) => {
    const box = make("div", "figure");
    const number = make("dd", "", value);
    if (note) number.append(make("small", "", note));
    box.append(make("dt", "", label), number);
    element("figures").append(box);
  });
}

function showOrigin() {
  data.provenance.forEach(([name, value]) => {
    element("provenance").append(make("dt", "", name), make("dd", "", value));
  });
  element("config").textContent = data.config;
  element("copy").addEventListener("click", () => {
    getSelection().selectAllChildren(element("config"));
    const copied = navigator.clipboard?.writeText(data.config) ?? Promise.reject(new Error("no clipboard"));
    copied.then(() => { element("copy").textContent = "Copied"; }, () => { element("copy").textContent = "Selected"; });
  });
}

function showParts() {
  document.querySelectorAll("main > section:not([hidden]) h2").forEach((heading) => {
    const link = make("a", "", heading.textContent.replace(" of the nodes", "").replace(" and origin", ""));
    link.href = `#${heading.closest("section").id}`;
    element("parts").append(link);
  });
}

function showMap() {
  if (!data.map || !data.map.x.base64) return null;
  element("map").hidden = false;
  element("map-note").textContent = data.map.note;
  const map = new NodeMap(data.map);
  element("points").setAttribute("aria-label", `Map of ${grouped(map.count)} nodes`);
  showColourings(map);
  map.listeners.push(() => showChosen(map));
  showChosen(map);
  listenToPointers(map);
  listenToKeys(map);
  listenToSearch(map);
  element("zoom-in").addEventListener("click", () => map.zoom(1.6));
  element("zoom-out").addEventListener("click", () => map.zoom(1 / 1.6));
  element("zoom-all").addEventListener("click", () => map.showAll());
  element("map-svg").addEventListener("click", () => saveSvg(map.toSvg().svg, fileName("map")));
  element("map-png").addEventListener("click", () => {
    const { svg, width, height } = map.toSvg();
    savePng(svg, width, height, fileName("map"));
  });
  themeListeners.push(() => {
    map.paint();
    showLegend(map);
    showChosen(map);
  });
  new ResizeObserver(() => map.resize()).observe(element("view"));
  map.resize();
  return map;
}

applyTheme();
showHead();
showOrigin();
showCharts();
const nodeMap = showMap();
showParts();
// For scripts that look at the page: where a node is on the screen, and how long a frame takes.
window.blnn = {
  place(id) {
    const node = findNodes(nodeMap, id, 1)[0];
    const box = element("points").getBoundingClientRect();
    const [x, y] = nodeMap.place(node);
    return [box.left + x, box.top + y];
  },
  frameMilliseconds(frames) {
    const start = performance.now();
    for (let frame = 0; frame < frames; frame += 1) {
      nodeMap.zoom(frame % 2 ? 1.1 : 1 / 1.1);
      nodeMap.draw();
    }
    return (performance.now() - start) / frames;
  },
};
root.dataset.ready = "true";
