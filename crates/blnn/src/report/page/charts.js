// Curves and bars, drawn by ECharts.

const drawn = [];

/// A number with as many digits as a reader wants.
function shown(value, percent) {
  if (percent) return `${(100 * value).toFixed(1)} %`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return Number(value.toPrecision(3)).toExponential();
  return String(Number(value.toPrecision(5)));
}

function axisText(label) {
  return { name: label, nameLocation: "middle", nameTextStyle: { color: colour("soft"), fontSize: 12 } };
}

function axisLines() {
  return {
    axisLine: { lineStyle: { color: colour("line") } },
    axisTick: { show: false },
    axisLabel: { color: colour("soft"), fontSize: 11, hideOverlap: true },
    splitLine: { lineStyle: { color: colour("line") } },
  };
}

/// The colour a class has on the map, if the name is that of a class.
function classColour(name) {
  const classes = data.map?.colourings.find((colouring) => colouring.name === "class");
  const at = classes?.categories.indexOf(name) ?? -1;
  return at < 0 ? undefined : categoryColour(at);
}

function seriesOption(chart, variant, series, index) {
  const tint = categoryColour(index);
  const common = { name: series.name, color: tint, emphasis: { focus: "none" } };
  if (chart.kind === "bars") {
    return {
      ...common, type: "bar", barMaxWidth: 46, barCategoryGap: "18%",
      itemStyle: { borderRadius: [4, 4, 0, 0] },
      data: series.points.map(([at, value]) => ({ value, itemStyle: { color: classColour(variant.categories[at]) ?? tint } })),
    };
  }
  return {
    ...common, type: "line", data: series.points, showSymbol: series.points.length < 25,
    symbol: "circle", symbolSize: 6, lineStyle: { width: 2 }, smooth: false,
  };
}

function chartOption(chart, variant) {
  const bars = chart.kind === "bars";
  const value = (v) => shown(v, chart.percent);
  const legend = variant.series.length > 1;
  // Names must all be read, ranges only here and there.
  const tilted = bars && !chart.percent && variant.categories.some((name) => name.length > 11);
  const below = (chart.x_label ? 46 : 28) + (tilted ? 34 : 0);
  return {
    animation: false,
    aria: { enabled: true, label: { description: `${chart.title}. ${chart.note}` } },
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    grid: { left: 52, right: 18, top: legend ? 36 : 18, bottom: below },
    legend: legend ? { top: 0, left: 0, itemWidth: 16, itemHeight: 8, textStyle: { color: colour("soft") } } : undefined,
    tooltip: {
      trigger: "axis", renderMode: "html", confine: true, transitionDuration: 0,
      backgroundColor: colour("card"), borderColor: colour("line"), textStyle: { color: colour("ink"), fontSize: 12 },
      axisPointer: { type: bars ? "shadow" : "line" },
      formatter: (hovered) => tooltip(chart, variant, hovered, value),
    },
    xAxis: {
      ...axisLines(), ...axisText(chart.x_label), nameGap: tilted ? 62 : 28,
      type: bars ? "category" : "value", data: bars ? variant.categories : undefined,
      min: bars ? undefined : "dataMin", max: bars ? undefined : "dataMax",
      splitLine: { show: false },
      axisLabel: { ...axisLines().axisLabel, width: 110, overflow: "truncate", rotate: tilted ? 22 : 0, interval: bars && !chart.percent ? 0 : "auto", formatter: bars ? undefined : (v) => grouped(v) },
    },
    yAxis: {
      ...axisLines(), ...axisText(chart.y_label), nameGap: 38, type: "value", scale: !bars,
      max: chart.percent ? 1 : undefined,
      axisLabel: { ...axisLines().axisLabel, formatter: (v) => (chart.percent ? `${Math.round(100 * v)}` : shown(v, false)) },
    },
    series: variant.series.map((series, index) => seriesOption(chart, variant, series, index)),
  };
}

/// The tooltip as an element, so that names are text and nothing else.
function tooltip(chart, variant, hovered, value) {
  const box = make("div");
  const first = hovered[0];
  const head = chart.kind === "bars" ? variant.categories[first.dataIndex] : `epoch ${grouped(first.value[0])}`;
  box.append(make("b", "", head));
  hovered.forEach((item) => {
    const number = Array.isArray(item.value) ? item.value[1] : item.value;
    box.append(make("div", "", `${item.seriesName}: ${value(number)}`));
  });
  return box;
}

function chartCard(chart) {
  const card = make("figure", "card chart-card");
  card.style.margin = "0";
  card.id = `chart-${chart.id}`;
  const head = make("div", "card-head");
  head.append(make("h3", "", chart.title));
  const frame = make("div", "chart");
  const note = make("figcaption", "note", chart.note);
  card.append(head, frame, note);
  const state = { chart, frame, variant: 0, echart: null };
  if (chart.variants.length > 1) note.after(variantChoice(state));
  ["SVG", "PNG"].forEach((kind) => {
    const button = make("button", "", kind);
    button.type = "button";
    button.title = `Save “${chart.title}” as ${kind}`;
    button.setAttribute("aria-label", button.title);
    button.addEventListener("click", () => exportChart(state, kind));
    head.append(button);
  });
  drawn.push(state);
  return card;
}

function variantChoice(state) {
  const select = make("select");
  select.setAttribute("aria-label", "Node whose neighbours are shown");
  state.chart.variants.forEach((variant, index) => {
    const option = make("option", "", variant.name);
    option.value = index;
    select.append(option);
  });
  select.addEventListener("change", () => {
    state.variant = Number(select.value);
    drawChart(state);
  });
  return select;
}

function drawChart(state) {
  if (!state.echart) state.echart = echarts.init(state.frame, null, { renderer: "svg" });
  state.echart.setOption(chartOption(state.chart, state.chart.variants[state.variant]), true);
}

/// The drawing on the page with a background, as text.
function chartSvg(state) {
  const svg = state.frame.querySelector("svg").cloneNode(true);
  const back = document.createElementNS(svg.namespaceURI, "rect");
  Object.entries({ width: "100%", height: "100%", fill: colour("card") })
    .forEach(([name, value]) => back.setAttribute(name, value));
  svg.prepend(back);
  return new XMLSerializer().serializeToString(svg);
}

function exportChart(state, kind) {
  const [svg, name] = [chartSvg(state), fileName(state.chart.id)];
  if (kind === "SVG") saveSvg(svg, name);
  else savePng(svg, state.echart.getWidth(), state.echart.getHeight(), name);
}

function showCharts() {
  data.charts.forEach((chart) => {
    element(chart.section).hidden = false;
    element(`charts-${chart.section}`).append(chartCard(chart));
  });
  drawn.forEach(drawChart);
  themeListeners.push(() => drawn.forEach(drawChart));
  const sizes = new ResizeObserver(() => drawn.forEach((state) => state.echart.resize()));
  drawn.forEach((state) => sizes.observe(state.frame));
}
