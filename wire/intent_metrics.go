package wire

// IntentCollectMetrics reports the board's health figures.
const IntentCollectMetrics = "collect_metrics"

// CollectMetrics are the arguments of collect_metrics: none.
type CollectMetrics struct{}

// Map implements Args.
func (a CollectMetrics) Map() map[string]any { return nil }

var _ = declare[CollectMetrics](IntentCollectMetrics, "report the board's health figures",
	Traits{Still: true, Holds: HoldsNothing, Repeatable: true})
