// Light and dark: as the system has it, until the reader chooses.

const root = document.documentElement;
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const themeListeners = [];

/// Storage is closed to some files opened from a disk; the choice then lasts as long as the page.
let chosenTheme = null;
try {
  chosenTheme = localStorage.getItem("blnn-theme");
} catch {
  chosenTheme = null;
}

const isDark = () => (chosenTheme ? chosenTheme === "dark" : systemDark.matches);

function applyTheme() {
  root.dataset.theme = isDark() ? "dark" : "light";
  element("theme").textContent = isDark() ? "☀ Light" : "☾ Dark";
  element("theme").setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
  themeListeners.forEach((listener) => listener());
}

element("theme").addEventListener("click", () => {
  chosenTheme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("blnn-theme", chosenTheme);
  } catch {
    // Kept in memory only.
  }
  applyTheme();
});
systemDark.addEventListener("change", applyTheme);

/// The value of a colour of the style sheet.
const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

const PALETTE = [
  "#3b6fd4", "#ef6c1a", "#2f9e44", "#c2255c", "#8257e5",
  "#e0a100", "#0c9aa8", "#8d6e63", "#e26fb4", "#7a9b12",
];

function mix(hex, other, share) {
  const part = (text, at) => parseInt(text.slice(at, at + 2), 16);
  const mixed = [1, 3, 5].map((at) => Math.round(part(hex, at) * (1 - share) + part(other, at) * share));
  return `#${mixed.map((v) => v.toString(16).padStart(2, "0")).join("")}`;
}

/// Colours for categories: ten, then the same ten lighter, then as many hues as it takes.
function categoryColour(index) {
  if (index >= 20) return hueColour(index * 137.508);
  const base = PALETTE[index % 10];
  const light = index < 10 ? base : mix(base, "#ffffff", isDark() ? 0.5 : 0.42);
  return isDark() && index < 10 ? mix(light, "#ffffff", 0.16) : light;
}

function hueColour(hue) {
  const [saturation, lightness] = [0.6, isDark() ? 0.65 : 0.5];
  const at = (shift) => {
    const k = (shift + hue / 30) % 12;
    const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return `#${at(0)}${at(8)}${at(4)}`;
}

/// From few to many.
const ramps = {
  light: ["#c9dcf5", "#6fa3dd", "#2b62b8", "#3a1f7a"],
  dark: ["#27405f", "#3f7fae", "#6cc3a5", "#f7e27a"],
};

function rampColour(share) {
  const stops = isDark() ? ramps.dark : ramps.light;
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  return mix(stops[below], stops[below + 1], place - below);
}
