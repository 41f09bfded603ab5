package outage

import (
	"bytes"
	"fmt"
)

// Sizes of the drawing, in pixels.
const (
	width, height           = 860, 380
	left, right, top, below = 60, 20, 50, 50
	plotWidth               = width - left - right
	plotHeight              = height - top - below
)

// bands are the priorities from the most urgent, and their colours.
var bands = [...]struct{ name, colour string }{{"high", "#c0392b"}, {"normal", "#2e86c1"}, {"low", "#a6b1ba"}}

// SVG draws how many commands went out in each second after the comeback, by
// priority, against the rate that the bucket allows.
func (d Drained) SVG() []byte {
	var b bytes.Buffer
	seconds := d.PerSecond()
	most := drainBurst + drainRate
	x := func(s float64) float64 { return left + s*plotWidth/float64(max(len(seconds), 1)) }
	y := func(n float64) float64 { return top + plotHeight - n*plotHeight/float64(most) }
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#222">`, width, height)
	line(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	line(`<text x="%d" y="22" font-size="15">After an outage of an hour: %d commands for %d nodes that all return at once</text>`,
		left, d.Summary.Commands, d.Summary.Nodes)
	for n := 0; n <= most; n += drainRate {
		line(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`,
			left, width-right, y(float64(n)), y(float64(n)), left-8, y(float64(n))+4, n)
	}
	for s := 0; s <= len(seconds); s += 10 {
		line(`<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x(float64(s)), height-below+18, s)
	}
	for s, counts := range seconds {
		sum := 0
		for k, n := range counts {
			if n == 0 {
				continue
			}
			line(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x(float64(s))+0.5, y(float64(sum+n)),
				x(float64(s+1))-x(float64(s))-1, y(float64(sum))-y(float64(sum+n)), bands[k].colour)
			sum += n
		}
	}
	line(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#111" stroke-dasharray="6 4"/>`, left, width-right, y(drainRate), y(drainRate))
	line(`<text x="%d" y="%.1f" text-anchor="end">%d/s, the rate of the bucket; it starts with %d saved up</text>`,
		width-right, y(drainRate)-6, drainRate, drainBurst)
	for k, p := range bands {
		at := width - right - 220 + k*75
		line(`<rect x="%d" y="%d" width="11" height="11" fill="%s"/><text x="%d" y="%d">%s</text>`, at, top-16, p.colour, at+15, top-6, p.name)
	}
	line(`<text x="%d" y="%d" text-anchor="middle">seconds since the nodes are back</text>`, left+plotWidth/2, height-12)
	line(`<text x="16" y="%d" text-anchor="middle" transform="rotate(-90 16 %d)">commands sent a second</text>`, top+plotHeight/2, top+plotHeight/2)
	line(`</svg>`)
	return b.Bytes()
}
