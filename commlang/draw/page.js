"use strict";
const stage = document.getElementById("stage");
const svg = stage.querySelector("svg");
const box = document.getElementById("tip");
const field = document.getElementById("search");
const count = document.getElementById("count");
const [, , WIDTH, HEIGHT] = svg.getAttribute("viewBox").split(" ").map(Number);
const CHARACTER = 6.1; // as in svg.py
let zoom = 1;

// Native tooltips come late and cannot be styled: their text moves into the page's own.
const marks = [...svg.querySelectorAll(".mark")];
for (const mark of marks) {
  const title = mark.querySelector(":scope > title");
  if (!title) continue;
  mark.dataset.tip = title.textContent;
  mark.setAttribute("aria-label", title.textContent);
  title.remove();
}
svg.querySelector(":scope > title")?.remove();
const labels = [...svg.querySelectorAll("text[data-w]")];
const others = [...svg.querySelectorAll("text:not([data-w])")];
const sizes = new Map([...labels, ...others].map((t) => [t, parseFloat(getComputedStyle(t).fontSize)]));

// Text keeps its size on the screen, so that zooming in makes room for more of it.
function fit(label, scale) {
  const room = Math.floor((label.dataset.w * scale) / CHARACTER);
  const { t = "", s = "" } = label.dataset;
  if (scale < 0.6) return "";
  if (t.length <= room) return t;
  if (s && s.length <= room) return s;
  const words = s || t;
  return room >= 4 ? words.slice(0, room - 1) + "…" : "";
}

function resize(wanted, x, y) {
  const before = zoom;
  zoom = Math.min(Math.max(wanted, 0.2), 24);
  svg.setAttribute("width", WIDTH * zoom);
  svg.setAttribute("height", HEIGHT * zoom);
  for (const [text, size] of sizes) text.style.fontSize = Math.max(size * Math.min(zoom, 1), 9) / zoom + "px";
  for (const label of labels) label.textContent = fit(label, zoom);
  const ratio = zoom / before;
  stage.scrollLeft = (stage.scrollLeft + x) * ratio - x;
  stage.scrollTop = (stage.scrollTop + y) * ratio - y;
  document.body.dataset.zoom = zoom.toFixed(2);
}

function zoomBy(factor, event) {
  const rim = stage.getBoundingClientRect();
  const x = event ? event.clientX - rim.left : stage.clientWidth / 2;
  const y = event ? event.clientY - rim.top : stage.clientHeight / 2;
  resize(zoom * factor, x, y);
}

function show(mark, x, y) {
  box.textContent = mark.dataset.tip.split(" · ").join("\n");
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 8)) + "px";
  box.style.top = Math.max(4, Math.min(y + 14, innerHeight - height - 8)) + "px";
}

let kept = null;
function keep(mark) {
  kept?.classList.remove("kept");
  kept = mark;
  kept?.classList.add("kept");
  box.classList.toggle("kept", Boolean(kept));
  if (!kept) box.hidden = true;
}

function markAt(event) {
  const mark = event.target instanceof Element ? event.target.closest(".mark") : null;
  return mark?.dataset.tip ? mark : null;
}

let drag = null;
stage.addEventListener("pointerdown", (event) => {
  if (event.button === 0) drag = { x: event.clientX, y: event.clientY, moved: false };
});
addEventListener("pointerup", (event) => {
  if (drag && !drag.moved && stage.contains(event.target)) {
    const mark = markAt(event);
    keep(mark);
    if (mark) show(mark, event.clientX, event.clientY);
  }
  drag = null;
  stage.classList.remove("drag");
});
addEventListener("pointermove", (event) => {
  if (drag) {
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    stage.classList.add("drag");
    stage.scrollBy(-dx, -dy);
    drag = { x: event.clientX, y: event.clientY, moved: true };
    return;
  }
  if (kept) return;
  const mark = markAt(event);
  if (mark) show(mark, event.clientX, event.clientY);
  else box.hidden = true;
});
stage.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY / 300), event);
  },
  { passive: false },
);

let hits = [];
let turn = -1;
function search() {
  const words = field.value.trim().toLowerCase();
  hits = words ? marks.filter((m) => m.dataset.tip?.toLowerCase().includes(words)) : [];
  for (const mark of marks) mark.classList.remove("hit");
  for (const mark of hits) mark.classList.add("hit");
  svg.classList.toggle("searching", Boolean(words));
  turn = -1;
  count.textContent = words ? `${hits.length} found` : "";
}
function next(step) {
  if (!hits.length) return;
  turn = (turn + step + hits.length) % hits.length;
  hits[turn].scrollIntoView({ block: "center", inline: "center" });
  count.textContent = `${turn + 1} of ${hits.length}`;
  const { left, bottom } = hits[turn].getBoundingClientRect();
  keep(hits[turn]);
  show(hits[turn], left, bottom);
}
field.addEventListener("input", search);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
});

const fitted = () => Math.min(stage.clientWidth / WIDTH, stage.clientHeight / HEIGHT);
const buttons = {
  in: () => zoomBy(1.5),
  out: () => zoomBy(1 / 1.5),
  one: () => resize(1, 0, 0),
  all: () => resize(fitted(), 0, 0),
};
for (const [name, act] of Object.entries(buttons)) document.getElementById(name).addEventListener("click", act);
const keys = { "+": buttons.in, "=": buttons.in, "-": buttons.out, 0: buttons.one, f: buttons.all };
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    field.value = "";
    search();
    keep(null);
    field.blur();
  }
  if (event.target === field || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    field.focus();
  } else keys[event.key]?.();
});
document.body.dataset.ready = String(marks.length);
