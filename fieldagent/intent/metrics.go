package intent

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/apollo-11/apollo11/wire"
)

// MetricsOptions are the settings of collect_metrics.
type MetricsOptions struct {
	Version string // of the agent
	DataDir string // whose volume is reported
	// Root is where proc and sys are found, by default the real root.
	Root fs.FS
	// Volume returns the size of a volume and what is left for this user, both in
	// bytes. By default the system is asked.
	Volume func(dir string) (total, free uint64, err error)
}

// Limits of what is read and reported.
const (
	maxProcFile = 64 << 10 // bytes; meminfo is about 2 KiB
	maxZones    = 8        // temperature sensors
)

// collect_metrics. It reports what the machine has: a figure
// that can't be had is left out, so that the same task suits every board.
//
//	agent       version, os, arch
//	cpus        number of processors
//	load        average number of waiting processes over 1, 5 and 15 minutes
//	memory      total and available, bytes
//	disk        total and free of the agent's data volume, bytes, and percent used
//	uptime_s    seconds since the board started
//	temperature degrees Celsius by sensor
var _ = builtIn(func(b Board) Intent {
	o := b.Metrics
	if o.Root == nil {
		o.Root = os.DirFS("/")
	}
	if o.Volume == nil {
		o.Volume = volume
	}
	return Typed(wire.IntentCollectMetrics, nil, metrics{o}.collect)
})

type metrics struct{ o MetricsOptions }

func (m metrics) collect(ctx context.Context, _ wire.CollectMetrics, _ Request) Result {
	values := map[string]any{
		"agent": map[string]any{"version": m.o.Version, "os": runtime.GOOS, "arch": runtime.GOARCH},
		"cpus":  uint64(runtime.NumCPU()),
	}
	for _, f := range []struct {
		name string
		get  func() any
	}{
		{"load", m.load}, {"memory", m.memory}, {"disk", m.disk}, {"uptime_s", m.uptime}, {"temperature", m.temperature},
	} {
		if ctx.Err() != nil {
			return Result{Code: ended(ctx), Detail: "stopped while the figures were being read"}
		}
		if v := f.get(); v != nil {
			values[f.name] = v
		}
	}
	return Result{Code: wire.CodeOK, Values: values}
}

// read returns a small file, or nothing.
func (m metrics) read(name string) string {
	f, err := m.o.Root.Open(name)
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, maxProcFile))
	if cerr := f.Close(); err != nil || cerr != nil {
		return ""
	}
	return string(data)
}

func (m metrics) load() any {
	fields := strings.Fields(m.read("proc/loadavg"))
	if len(fields) < 3 {
		return nil
	}
	var load []any
	for _, f := range fields[:3] {
		v, ok := figure(f)
		if !ok {
			return nil
		}
		load = append(load, v)
	}
	return load
}

func (m metrics) uptime() any {
	fields := strings.Fields(m.read("proc/uptime"))
	if len(fields) == 0 {
		return nil
	}
	v, ok := figure(fields[0])
	if !ok {
		return nil
	}
	return uint64(v)
}

func (m metrics) memory() any {
	figures := map[string]any{}
	names := map[string]string{"MemTotal:": "total", "MemAvailable:": "available"}
	for line := range strings.Lines(m.read("proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) != 3 || names[fields[0]] == "" || fields[2] != "kB" {
			continue
		}
		if kib, err := strconv.ParseUint(fields[1], 10, 50); err == nil {
			figures[names[fields[0]]] = kib << 10
		}
	}
	if len(figures) == 0 {
		return nil
	}
	return figures
}

func (m metrics) disk() any {
	total, free, err := m.o.Volume(m.o.DataDir)
	if err != nil || total == 0 || free > total {
		return nil
	}
	return map[string]any{"total": total, "free": free, "used_percent": uint64(float64(total-free) / float64(total) * 100)}
}

func (m metrics) temperature() any {
	zones, err := fs.Glob(m.o.Root, "sys/class/thermal/thermal_zone*")
	if err != nil {
		return nil
	}
	degrees := map[string]any{}
	for _, zone := range zones[:min(len(zones), maxZones)] {
		milli, err := strconv.ParseInt(strings.TrimSpace(m.read(path.Join(zone, "temp"))), 10, 32)
		if err != nil {
			continue
		}
		degrees[m.sensor(zone, degrees)] = float64(milli) / 1000
	}
	if len(degrees) == 0 {
		return nil
	}
	return degrees
}

// sensor names a zone by its type, and by its number too where two are alike.
func (m metrics) sensor(zone string, taken map[string]any) string {
	number := path.Base(zone)
	kind := strings.TrimSpace(m.read(path.Join(zone, "type")))
	if kind == "" || len(kind) > 32 {
		return number
	}
	if _, ok := taken[kind]; ok {
		return fmt.Sprintf("%s %s", kind, number)
	}
	return kind
}

// figure reads a number that is zero or more; NaN and infinities are none.
func figure(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v >= 0 && v < 1e15
}
