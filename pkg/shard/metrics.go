package shard

import "github.com/prometheus/client_golang/prometheus"

// Collector is the metrics of the shards of this process.
type Collector struct {
	shards              *Shards
	count, held, change *prometheus.Desc
}

// NewCollector returns the metrics of some shards.
func NewCollector(shards *Shards) *Collector {
	return &Collector{
		shards: shards,
		count:  prometheus.NewDesc("fleet_shards", "Shards in which the objects are split.", nil, nil),
		held:   prometheus.NewDesc("fleet_shards_held", "Shards that this process works on.", nil, nil),
		change: prometheus.NewDesc("fleet_shard_changes_total", "Shards that came to this process, and that it lost or gave up.", []string{"result"}, nil),
	}
}

// Describe names all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	to <- c.count
	to <- c.held
	to <- c.change
}

// Collect tells all values.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.shards.mu.Lock()
	count, held, taken, lost := c.shards.count, len(c.shards.held), c.shards.taken, c.shards.lost
	c.shards.mu.Unlock()
	to <- prometheus.MustNewConstMetric(c.count, prometheus.GaugeValue, float64(count))
	to <- prometheus.MustNewConstMetric(c.held, prometheus.GaugeValue, float64(held))
	to <- prometheus.MustNewConstMetric(c.change, prometheus.CounterValue, float64(taken), "taken")
	to <- prometheus.MustNewConstMetric(c.change, prometheus.CounterValue, float64(lost), "lost")
}
