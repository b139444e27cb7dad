# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Looks and read-outs of the report: what its page has inside instead of fetching it. Pure."""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root{color-scheme:light dark;--back:#f6f7f9;--card:#fff;--line:#e3e6eb;--grid:#e9ecf1;--text:#1b2330;--soft:#5d6878;
--main:#2563eb;--faint:#a9c4f8;--warn:#c2410c;--warnback:#fff4ec;--good:#15803d}
@media(prefers-color-scheme:dark){:root{--back:#12161d;--card:#1a2029;--line:#2b3441;--grid:#28303c;--text:#e7ebf1;
--soft:#9aa6b6;--main:#7aa7ff;--faint:#35507f;--warn:#fb923c;--warnback:#2e211a;--good:#4ade80}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--back);color:var(--text);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 40px}
h1,h2,p,td,th,dd,dt,li,figcaption{overflow-wrap:anywhere}
h1{margin:0;font-size:28px;line-height:1.2;letter-spacing:-.01em}
h2{margin:0 0 4px;font-size:16px}
.sub{margin:6px 0 0;color:var(--soft)}
.state{font-weight:600;color:var(--good)}
.state.going{color:var(--main)}
.state.bad{color:var(--warn)}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:22px 0 12px;padding:0}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tile{flex:1 1 200px;padding:12px 16px;min-width:0}
.tile dt{color:var(--soft);font-size:13px}
.tile dd{margin:2px 0 0;font-size:21px;font-weight:600;line-height:1.25;font-variant-numeric:tabular-nums}
.tile small{display:block;margin-top:2px;color:var(--soft);font-size:12.5px;font-weight:400}
.card{margin:12px 0;padding:16px 18px}
.note{border-color:var(--warn);background:var(--warnback)}
.note p{margin:4px 0 0}
.card>p{margin:4px 0 0;color:var(--soft)}
.note>p{color:inherit}
figure{margin:12px 0}
figcaption{display:flex;flex-wrap:wrap;align-items:baseline;column-gap:16px;margin-bottom:14px}
figcaption h2{margin:0}
.keys{display:flex;flex-wrap:wrap;column-gap:14px;color:var(--soft);font-size:12.5px}
.keys span::before{content:"";display:inline-block;width:16px;height:0;margin-right:6px;vertical-align:middle;
border-top:2.5px solid var(--main)}
.keys .raw::before{border-color:var(--faint)}
.keys .start::before{border-top:0;border-left:2px dashed var(--soft);width:0;height:12px;margin-left:4px}
.keys .gap::before{border-top:0;border-left:2.5px solid var(--warn);width:0;height:10px;margin-left:4px}
.read{margin-left:auto;font-size:13px;color:var(--soft);font-variant-numeric:tabular-nums;min-height:1.5em}
.plot{padding:0 14px 30px 62px;touch-action:pan-y}
.chart{display:block;width:100%;height:230px;overflow:visible}
.chart text{fill:var(--soft);font-size:12px;font-variant-numeric:tabular-nums}
.up,.what{text-anchor:end}
.across{text-anchor:middle}
.grid{stroke:var(--grid)}
.start{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:4 4}
.gap{stroke:var(--warn);stroke-width:2}
.cursor{stroke:var(--soft);visibility:hidden}
.area{overflow:visible}
.curve{fill:none;stroke:var(--main);stroke-width:2;stroke-linecap:round;stroke-linejoin:round;
vector-effect:non-scaling-stroke}
.curve.raw{stroke:var(--faint);stroke-width:1.25}
.curve.alone{stroke-width:8}
table{width:100%;border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:7px 12px 7px 0;text-align:left;border-top:1px solid var(--line);vertical-align:top}
thead th{border-top:0;color:var(--soft);font-weight:500;font-size:13px}
.files{color:var(--soft);font-size:13px}
a{color:var(--main)}
@media(max-width:640px){main{padding:18px 12px 28px}h1{font-size:23px}.tiles{gap:8px}
.tile{flex-basis:40%;padding:10px 12px}.tile dd{font-size:17px}.card{padding:14px}
.plot{padding-left:50px;padding-right:8px}
.chart{height:200px}.read{margin-left:0;width:100%}
thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
tr{display:block;padding:8px 0;border-top:1px solid var(--line)}tbody tr:first-child{border-top:0}
td{display:flex;gap:12px;padding:2px 0;border:0}td:empty{display:none}
td::before{content:attr(data-label);flex:0 0 38%;color:var(--soft)}
.pairs tr{display:flex;gap:12px}.pairs td::before{display:none}.pairs td:first-child{flex:0 0 38%;color:var(--soft)}}
@media print{body{background:#fff}.card,.tile,figure{break-inside:avoid}}
"""

# Shows the value under the pointer. The page says everything without it as well.
SCRIPT = """
for (const figure of document.querySelectorAll("figure[data-points]")) {
  const [chart, cursor, read, plot] = [".chart", ".cursor", ".read", ".plot"].map((part) => figure.querySelector(part));
  const points = figure.dataset.points.split(" ").filter(Boolean).map((pair) => pair.split(":").map(Number));
  const low = Number(chart.dataset.low), high = Number(chart.dataset.high), first = read.textContent;
  plot.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    if (!points.length || !box.width) return;
    const wanted = low + (event.clientX - box.left) / box.width * (high - low);
    let nearest = points[0];
    for (const point of points) if (Math.abs(point[0] - wanted) < Math.abs(nearest[0] - wanted)) nearest = point;
    const where = (nearest[0] - low) / (high - low) * 100 + "%";
    cursor.setAttribute("x1", where);
    cursor.setAttribute("x2", where);
    cursor.style.visibility = "visible";
    read.textContent = "step " + nearest[0].toLocaleString("en") + ": " + nearest[1];
  });
  plot.addEventListener("pointerleave", () => {
    cursor.style.visibility = "hidden";
    read.textContent = first;
  });
}
"""


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


# Nothing is fetched, nothing but these two texts is obeyed, whatever a log or a name smuggles in.
POLICY = (
    f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; base-uri 'none'; form-action 'none'"
)
