"""Style and script of the HTML pictures. Nothing is fetched; every color suits light and dark surroundings."""

from __future__ import annotations

_HUES = (212, 142, 32, 282, 350, 182, 62, 322)
NUM_COLORS = len(_HUES)

TRANSCRIPT_CSS = (
    """
.rt { color:var(--jp-content-font-color1,var(--vscode-foreground,currentColor));
  font:14px/1.5 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif; }
.rt .rt-soft { opacity:.65 } .rt .rt-legend { display:flex; flex-wrap:wrap; gap:6px; margin:0 0 8px }
.rt .rt-key { padding:0 9px; border-radius:9px; font-size:12px; line-height:19px }
.rt .rt-seq { margin:0 }
.rt .rt-texts > .rt-seq + .rt-seq { margin-top:14px; padding-top:12px; border-top:1px solid rgba(127,140,160,.35) }
.rt .rt-message { display:flex; gap:10px; margin:5px 0 }
.rt .rt-role { flex:0 0 68px; text-align:right; font-size:12px; line-height:21px; opacity:.65 }
.rt .rt-body { flex:1 1 0; padding-right:4px; min-width:0; white-space:pre-wrap; overflow-wrap:anywhere; unicode-bidi:isolate }
.rt .rt-forks { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(150px,100%),1fr)); gap:10px;
  margin:8px 0 8px 78px }
.rt .rt-forks > .rt-seq { border-left:3px solid rgba(127,140,160,.45); padding:1px 0 1px 10px; min-width:0 }
.rt .rt-forks .rt-forks { margin-left:4px }
.rt .rt-forks .rt-message { flex-direction:column; gap:0 } .rt .rt-forks .rt-role { text-align:left; flex:none }
.rt .rt-span { border-radius:4px; padding:1px 2px; unicode-bidi:isolate; box-decoration-break:clone;
  -webkit-box-decoration-break:clone }
.rt .rt-bad { background:rgba(239,68,68,.22); box-shadow:inset 0 -2px rgb(239,68,68) }
.rt .rt-error { border-left:3px solid rgb(239,68,68); background:rgba(239,68,68,.12); padding:6px 12px;
  margin:8px 0; white-space:pre-wrap; overflow-wrap:anywhere }
.rt .rt-facts { opacity:.65; font-size:12px; margin-top:8px }
.rt .rt-returned { margin-top:8px; white-space:pre-wrap; overflow-wrap:anywhere; font-size:13px }
.rt .rt-scroll { overflow:auto; max-height:860px }
.rt .rt-table { border-collapse:collapse; font-size:13px; color:inherit; margin:6px 0 }
.rt .rt-table th, .rt .rt-table td { border:0; border-bottom:1px solid rgba(127,140,160,.35);
  padding:4px 14px 4px 0; text-align:left; vertical-align:top; background:none; color:inherit;
  white-space:pre-wrap; overflow-wrap:anywhere }
.rt .rt-table del, .rt .rt-table ins { text-decoration:none; border-radius:3px }
.rt .rt-table del { background:rgba(239,68,68,.25) } .rt .rt-table ins { background:rgba(34,197,94,.25) }
.rt .rt-lines { white-space:pre; overflow-x:auto; margin:2px 0 8px;
  font:12.5px/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace }
.rt .rt-table th { opacity:.65; font-weight:600 } .rt .rt-head { font-weight:600 }
.rt .rt-head .rt-soft { font-weight:400 }
""".strip()
    + "\n"
    + "\n".join(
        f".rt .rt-c{index} {{ background:hsla({hue},80%,52%,.24); box-shadow:inset 0 -2px hsl({hue},70%,52%) }}"
        for index, hue in enumerate(_HUES)
    )
)

PAGE_CSS = """
body { margin:0 }
.rt.rt-page { color:#1b2130; background:#fbfcfe; padding:20px 28px 40px; min-height:100vh; box-sizing:border-box }
@media (prefers-color-scheme: dark) { .rt.rt-page { color:#e7eaf1; background:#12151c } }
.rt h1 { font-size:20px; margin:0 0 2px } .rt h2 { font-size:15px; margin:26px 0 10px }
.rt h2 .rt-soft { font-weight:400; font-size:12px }
.rt .rt-page-facts { opacity:.7; margin:0 0 14px }
.rt .rt-note { margin:8px 0; padding:6px 12px; border-left:3px solid #eab308; background:rgba(234,179,8,.12) }
.rt .rt-canvas { position:relative; border:1px solid rgba(127,140,160,.4); border-radius:10px; overflow:auto;
  background:rgba(127,140,160,.06); text-align:center }
.rt .rt-canvas.rt-live { overflow:hidden; height:62vh; min-height:300px }
.rt .rt-live .rt-graph { width:100%; height:100%; touch-action:none; cursor:grab; user-select:none }
.rt .rt-live.rt-dragging .rt-graph { cursor:grabbing } .rt .rt-live .rt-box { cursor:pointer; outline:none }
.rt .rt-live .rt-box:hover rect, .rt .rt-live .rt-box:focus-visible rect,
.rt .rt-live .rt-box.rt-pinned rect { stroke-width:2.5; stroke-opacity:1 }
.rt .rt-buttons { position:absolute; right:10px; top:10px; display:none; gap:6px }
.rt .rt-live .rt-buttons { display:flex }
.rt button { font:inherit; line-height:24px; min-width:30px; padding:0 8px; color:inherit;
  background:rgba(127,140,160,.18); border:1px solid rgba(127,140,160,.4); border-radius:7px; cursor:pointer }
.rt .rt-details { position:absolute; left:10px; bottom:10px; max-width:min(520px,70%); max-height:60%;
  overflow:auto; text-align:left; background:#fff; color:#1b2130; border:1px solid rgba(127,140,160,.5);
  border-radius:9px; padding:9px 13px; white-space:pre-wrap; overflow-wrap:anywhere; font-size:13px;
  box-shadow:0 4px 18px rgba(0,0,0,.15); unicode-bidi:isolate } .rt .rt-details:empty { display:none }
@media (prefers-color-scheme: dark) { .rt .rt-details { background:#1c212c; color:#e7eaf1 } }
.rt .rt-timeline { max-width:100%; height:auto }
.rt .rt-phase { display:inline-block; width:10px; height:10px; border-radius:2px; margin:0 5px 0 14px }
.rt .rt-breaks { margin:0; padding-left:22px }
.rt code { font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace }
"""

SCRIPT = """
(() => {
  const canvas = document.querySelector(".rt-canvas"), svg = canvas && canvas.querySelector("svg");
  if (!svg) return;
  const details = canvas.querySelector(".rt-details"), whole = svg.viewBox.baseVal;
  const size = { w: whole.width, h: whole.height };
  svg.removeAttribute("style");
  canvas.classList.add("rt-live");
  canvas.style.height = `min(62vh, ${Math.max(size.h + 40, 300)}px)`;
  let view, pinned = null, drag = null;
  const show = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  const fit = all => {
    const box = canvas.getBoundingClientRect(), full = Math.max(size.w / box.width, size.h / box.height, 1);
    const scale = all ? full : Math.min(full, 1.6);
    view = { w: box.width * scale, h: box.height * scale };
    view.x = (size.w - view.w) / 2;
    view.y = size.h > view.h ? 0 : (size.h - view.h) / 2;
    show();
  };
  const zoom = (factor, cx = 0.5, cy = 0.5) => {
    const w = Math.min(Math.max(view.w * factor, 120), (size.w + size.h) * 6 + 4000), h = view.h * w / view.w;
    view = { x: view.x + (view.w - w) * cx, y: view.y + (view.h - h) * cy, w, h };
    show();
  };
  canvas.addEventListener("wheel", event => {
    if (event.target.closest(".rt-details")) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    const cx = (event.clientX - box.left) / box.width, cy = (event.clientY - box.top) / box.height;
    zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY)) / 600), cx, cy);
  }, { passive: false });
  canvas.addEventListener("pointerdown", event => {
    if (!event.target.closest("button, .rt-details")) drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  addEventListener("pointermove", event => {
    if (!drag) return;
    const scale = view.w / canvas.getBoundingClientRect().width;
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    canvas.classList.add("rt-dragging");
    view.x -= dx * scale; view.y -= dy * scale;
    drag = { x: event.clientX, y: event.clientY, moved: true };
    show();
  });
  addEventListener("pointerup", () => { setTimeout(() => { drag = null; }); canvas.classList.remove("rt-dragging"); });
  const facts = new Map();
  canvas.querySelectorAll("[data-node]").forEach(node => {
    const id = node.dataset.node, title = node.querySelector("title");
    facts.set(id, title ? title.textContent : "");
    if (title) title.remove();
    const describe = other => { details.textContent = other === null ? "" : facts.get(other) ?? ""; };
    const pin = () => {
      if (drag && drag.moved) return;
      pinned = pinned === id ? null : id;
      canvas.querySelectorAll(".rt-box").forEach(box => box.classList.toggle("rt-pinned", box.dataset.node === pinned));
      describe(pinned);
    };
    node.addEventListener("pointerenter", () => { if (pinned === null) describe(id); });
    node.addEventListener("pointerleave", () => { if (pinned === null) describe(null); });
    node.addEventListener("click", pin);
    node.addEventListener("keydown", event => { if (event.key === "Enter") pin(); });
  });
  const [closer, farther, all] = canvas.querySelectorAll("button");
  closer.onclick = () => zoom(1 / 1.3);
  farther.onclick = () => zoom(1.3);
  all.onclick = () => fit(true);
  addEventListener("resize", () => fit(false));
  fit(false);
})();
"""
