package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/apollo-11/apollo11/broker"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/storage"
)

// metrics is what /metrics shows. Names follow the Prometheus conventions and
// are never changed; their help texts are their documentation.
type metrics struct {
	reg           *prometheus.Registry
	counts        *prometheus.CounterVec
	refused       *prometheus.CounterVec
	uplinkDropped prometheus.Counter
	narrow        prometheus.Gauge
	unknown       *prometheus.HistogramVec
	batches       prometheus.Counter
	records       prometheus.Counter
	online        prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		reg: prometheus.NewRegistry(),
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apollo_engine_total",
			Help: "What the engine did, by kind of step."}, []string{"step"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apollo_refused_total",
			Help: "Submissions that a door refused before the engine saw them, by door and reason."}, []string{"door", "reason"}),
		uplinkDropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "apollo_uplink_dropped_total",
			Help: "Agents' messages dropped because the loop was busy; agents send them again."}),
		narrow: prometheus.NewGauge(prometheus.GaugeOpts{Name: "apollo_narrowband_connections",
			Help: "Agents connected to the narrowband listener."}),
		unknown: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "apollo_status_unknown_seconds",
			Help:    "How long the state of an attempt was unknown: from sending it to the first sign of it, by the path of the sign.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, .75, 1, 1.5, 2, 3, 5, 10, 30, 60}}, []string{"path"}),
		batches: prometheus.NewCounter(prometheus.CounterOpts{Name: "apollo_commits_total",
			Help: "Batches made durable."}),
		records: prometheus.NewCounter(prometheus.CounterOpts{Name: "apollo_instruction_writes_total",
			Help: "Instruction records written."}),
		online: prometheus.NewGauge(prometheus.GaugeOpts{Name: "apollo_nodes_online",
			Help: "Nodes with a living session."}),
	}
	m.reg.MustRegister(m.counts, m.refused, m.uplinkDropped, m.narrow, m.unknown, m.batches, m.records, m.online,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) narrowband(connected bool) {
	if connected {
		m.narrow.Inc()
	} else {
		m.narrow.Dec()
	}
}

// gauges registers figures that are read when somebody looks.
func (m *metrics) gauges(s *storage.Store, b *broker.Broker, o *outboxes, logLost func() uint64) {
	gauge := func(name, help string, f func() float64) {
		m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	counter := func(name, help string, f func() float64) {
		m.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, f))
	}
	gauge("apollo_store_bytes", "Size of the log on disk.", func() float64 { return float64(s.Stats().DiskBytes) })
	counter("apollo_store_stalls_total", "Times the store held back writes.", func() float64 { return float64(s.Stats().Stalls) })
	counter("apollo_store_disk_slow_total", "Disk operations of more than 5 s.", func() float64 { return float64(s.Stats().DiskSlow) })
	counter("apollo_outbox_dropped_total", "Messages to nodes that were not sent; the engine sends them again.",
		func() float64 { return float64(o.dropped.Load()) })
	counter("apollo_log_lines_dropped_total", "Lines of the log that were not written: nobody read them in time, or writing failed.",
		func() float64 {
			if logLost == nil {
				return 0
			}
			return float64(logLost())
		})
	_ = b
}

// add takes in what one round did.
func (m *metrics) add(e *engine.Effects) {
	for _, c := range e.Confirms {
		m.unknown.WithLabelValues(c.Path.String()).Observe(c.Window.Seconds())
	}
	c := &e.Counts
	if *c == (engine.Counts{}) {
		return
	}
	for _, f := range []struct {
		step string
		n    int
	}{
		{"submitted", c.Submitted}, {"existing", c.Existing}, {"refused", c.RefusedTasks},
		{"dispatched", c.Dispatched}, {"resent", c.Resent}, {"retried", c.Retried},
		{"event", c.Events}, {"event_duplicate", c.DuplicateEvents}, {"event_gap", c.EventGaps},
		{"stale_report", c.StaleReports}, {"unknown_report", c.UnknownReports}, {"illegal_move", c.IllegalMoves},
		{"compact_ack", c.CompactAcks}, {"compact_first", c.CompactFirst},
		{"succeeded", c.Succeeded}, {"failed", c.Failed}, {"timed_out", c.TimedOut}, {"cancelled", c.Cancelled},
		{"dead_letter", c.DeadLetters}, {"digest_equal", c.DigestsEqual}, {"digest_differs", c.DigestsDiffer},
		{"lease_ended", c.LeasesEnded},
	} {
		if f.n != 0 {
			m.counts.WithLabelValues(f.step).Add(float64(f.n))
		}
	}
}
