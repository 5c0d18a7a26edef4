"""How figures look: on light and dark pages, and on narrow ones, where all shrinks and letters must not.

Blue, orange and grey are told apart by every kind of colour vision (Okabe and Ito, 2008); order is told by
lightness. A figure that is shown as a picture sees its own width there, so the style can follow it.
"""

WIDE_SIZE = 13
NARROW_SIZE = 20
"""Of letters, in the figure's own pixels: below NARROW it is shown at little more than half its size."""
NARROW = 560
BOLD = 1.15
"""How much wider heads and titles are than other text."""
TITLE = 1.2
"""Size of its letters, by the usual size."""
CLASSES = 5
"""Of colour for the order of objectives, and of darkness for the number of trials."""

_LIGHT = """
text { fill: #57606a; }
.page { fill: #ffffff; }
.title, .head { fill: #1f2328; }
.halo { stroke: #ffffff; }
.frame { fill: #f6f8fa; }
.grid { stroke: #d8dee4; }
.axis { stroke: #8c959f; }
.seam { stroke: #8c959f; }
.trial, .tile { fill: #0969da; }
.retired, .old { fill: #8c959f; }
.mean, .level { stroke: #0a3069; }
.level { fill: #ffffff; }
.record, .ring, .chosen { stroke: #c4500a; }
.best { fill: #c4500a; }
.cross { stroke: #6e4b52; }
.beyond { fill: #6e4b52; }
.c0 { stroke: #c8d1da; }
.c1 { stroke: #9ecae1; }
.c2 { stroke: #57a0ce; }
.c3 { stroke: #1f6fb4; }
.c4 { stroke: #08306b; }
"""

_DARK = """
text { fill: #9da7b3; }
.page { fill: #0d1117; }
.title, .head { fill: #f0f6fc; }
.halo { stroke: #0d1117; }
.frame { fill: #151b23; }
.grid { stroke: #2a313c; }
.axis { stroke: #656c76; }
.seam { stroke: #656c76; }
.trial, .tile { fill: #58a6ff; }
.retired, .old { fill: #848d97; }
.mean, .level { stroke: #cfe8ff; }
.level { fill: #151b23; }
.record, .ring, .chosen { stroke: #ff9a52; }
.best { fill: #ff9a52; }
.cross { stroke: #d3b4ba; }
.beyond { fill: #d3b4ba; }
.c0 { stroke: #343b45; }
.c1 { stroke: #28517d; }
.c2 { stroke: #2f78bf; }
.c3 { stroke: #6fb3f5; }
.c4 { stroke: #e0f0ff; }
"""

STYLE = f"""
text {{ font: {WIDE_SIZE}px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }}
.title {{ font-size: {WIDE_SIZE * TITLE:.0f}px; font-weight: 600; }}
.head {{ font-weight: 600; }}
.halo {{ paint-order: stroke; stroke-width: 6px; stroke-linejoin: round; }}
.narrow {{ display: none; }}
.grid, .axis, .seam {{ stroke-width: 1; }}
.seam {{ stroke-dasharray: 3 4; }}
.trial, .retired {{ fill-opacity: 0.7; }}
.d0 {{ fill-opacity: 0.25; }}
.d1 {{ fill-opacity: 0.42; }}
.d2 {{ fill-opacity: 0.6; }}
.d3 {{ fill-opacity: 0.8; }}
.d4 {{ fill-opacity: 1; }}
.mean, .record, .ring, .chosen, .cross, .line {{ fill: none; stroke-linecap: round; stroke-linejoin: round; }}
.mean, .level, .ring, .record {{ stroke-width: 2; }}
.cross {{ stroke-width: 1.6; }}
.line {{ stroke-width: 1.5; stroke-opacity: 0.8; }}
.fine .line {{ stroke-width: 1; stroke-opacity: 0.6; }}
.chosen {{ stroke-width: 3; }}
.swatch {{ stroke-width: 12; stroke-linecap: butt; }}
{_LIGHT.strip()}
@media (prefers-color-scheme: dark) {{
{_DARK.strip()}
}}
@media (max-width: {NARROW}px) {{
text {{ font-size: {NARROW_SIZE}px; }}
.title {{ font-size: {NARROW_SIZE * TITLE:.0f}px; }}
.trial, .retired, .best {{ r: 6px; }}
.level {{ r: 5px; }}
.ring {{ r: 10px; }}
.halo {{ stroke-width: 9px; }}
.narrow {{ display: inline; }}
.wide {{ display: none; }}
.cross, .line {{ stroke-width: 2.4; }}
.mean, .level, .ring, .record {{ stroke-width: 3; }}
.chosen {{ stroke-width: 4.5; }}
.fine .line {{ stroke-width: 1.5; }}
}}
"""
