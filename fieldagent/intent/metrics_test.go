package intent_test

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

func collect(t *testing.T, ctx context.Context, o intent.MetricsOptions) (intent.Processed, map[string]any) {
	t.Helper()
	r := newRegistry(t, intent.BuiltIn(intent.Board{Metrics: o}))
	if _, p := r.Check("collect_metrics", nil); p != nil {
		t.Fatalf("check: %+v", p)
	}
	p := r.Run(ctx, "collect_metrics", nil, intent.Request{Cause: "t"})
	m, err := wire.DecodeMap(p.Payload)
	must(t, err)
	return p, m
}

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func TestMetricsOfABoard(t *testing.T) {
	p, got := collect(t, t.Context(), intent.MetricsOptions{
		Version: "1.2.3", DataDir: "/data",
		Volume: func(dir string) (uint64, uint64, error) {
			if dir != "/data" {
				t.Errorf("volume of %q", dir)
			}
			return 1000, 250, nil
		},
		Root: fstest.MapFS{
			"proc/loadavg":                          file("0.52 0.58 0.59 1/602 12345\n"),
			"proc/uptime":                           file("350735.47 234388.90\n"),
			"proc/meminfo":                          file("MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:   400 kB\nHugePages_Total:   0\n"),
			"sys/class/thermal/thermal_zone0/temp":  file("48312\n"),
			"sys/class/thermal/thermal_zone0/type":  file("cpu-thermal\n"),
			"sys/class/thermal/thermal_zone1/temp":  file("-2500\n"),
			"sys/class/thermal/thermal_zone1/type":  file("cpu-thermal\n"),
			"sys/class/thermal/thermal_zone2/temp":  file("nonsense\n"),
			"sys/class/thermal/cooling_device0/max": file("1\n"),
		},
	})
	want := map[string]any{
		"agent":       map[string]any{"version": "1.2.3", "os": runtime.GOOS, "arch": runtime.GOARCH},
		"cpus":        uint64(runtime.NumCPU()),
		"load":        []any{0.52, 0.58, 0.59},
		"uptime_s":    uint64(350735),
		"memory":      map[string]any{"total": uint64(1000 << 10), "available": uint64(400 << 10)},
		"disk":        map[string]any{"total": uint64(1000), "free": uint64(250), "used_percent": uint64(75)},
		"temperature": map[string]any{"cpu-thermal": 48.312, "cpu-thermal thermal_zone1": -2.5},
	}
	if p.Code != wire.CodeOK || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%v\nwant\n%v", p, got, want)
	}
}

func TestMetricsThatCannotBeHadAreLeftOut(t *testing.T) {
	for name, root := range map[string]fs.FS{
		"nothing there": fstest.MapFS{},
		"nonsense": fstest.MapFS{
			"proc/loadavg": file("NaN Inf -1"), "proc/uptime": file(""), "proc/meminfo": file("MemTotal: -5 kB\nMemAvailable: 1\n"),
		},
	} {
		p, got := collect(t, t.Context(), intent.MetricsOptions{Root: root,
			Volume: func(string) (uint64, uint64, error) { return 0, 0, errors.New("no") }})
		if p.Code != wire.CodeOK || len(got) != 2 || got["agent"] == nil || got["cpus"] == nil {
			t.Errorf("%s: %+v %v", name, p, got)
		}
	}
}

func TestMetricsOfThisMachine(t *testing.T) {
	p, got := collect(t, t.Context(), intent.MetricsOptions{Version: "test", DataDir: t.TempDir()})
	if p.Code != wire.CodeOK {
		t.Fatalf("%+v", p)
	}
	if runtime.GOOS != "linux" {
		t.Logf("the figures come from linux files, this is %s: %v", runtime.GOOS, got)
		return
	}
	for _, figure := range []string{"load", "memory", "disk", "uptime_s"} {
		if got[figure] == nil {
			t.Errorf("no %s in %v", figure, got)
		}
	}
}

func TestMetricsRefuseArgumentsAndStopWithTheContext(t *testing.T) {
	r := newRegistry(t, intent.BuiltIn(intent.Board{Metrics: intent.MetricsOptions{Root: fstest.MapFS{}}}))
	raw, err := wire.EncodeMap(map[string]any{"all": true}, wire.MaxArgsBytes)
	must(t, err)
	if _, p := r.Check("collect_metrics", raw); p == nil || p.Code != wire.CodeBadArgs {
		t.Errorf("check: %+v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p := r.Run(ctx, "collect_metrics", nil, intent.Request{Cause: "t"}); p.Code != wire.CodeCancelled {
		t.Errorf("run: %+v", p)
	}
}
