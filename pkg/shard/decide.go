package shard

import "slices"

// view is what a member knows when it decides.
type view struct {
	self string
	// live are the members that renew their leases; self is one of them.
	live []string
	// table says who has which shard; "" is nobody.
	table []string
	// held are the shards that self works on; idle those of them that are draining and have no work left.
	held, idle map[int]bool
	// dead says that a holder has not renewed its lease for as long as it lasts.
	dead func(holder string) bool
}

// decision is what to do about shards.
type decision struct {
	// drain are shards that are to go to another member: no more work begins on them.
	drain []int
	// release are drained shards to be given up, and claim those to be taken, both in the table.
	release, claim []int
	// lost are shards that self works on although the table says that they are another's.
	lost []int
}

// decide is pure. It takes no shard from a member that may still work on it.
func decide(v view) decision {
	wanted := assign(v.live, len(v.table))
	var d decision
	for shard, holder := range v.table {
		if holder == v.self {
			d.own(v, shard, wanted[shard] == v.self)
		} else {
			d.others(v, shard, holder, wanted[shard] == v.self)
		}
	}
	return d
}

// own decides on a shard that is self's by the table.
func (d *decision) own(v view, shard int, stays bool) {
	switch {
	case !stays && v.held[shard] && !v.idle[shard]:
		d.drain = append(d.drain, shard)
	case !stays, v.idle[shard]: // an idle one was to go; it can be taken again
		d.release = append(d.release, shard)
	case !v.held[shard]:
		d.claim = append(d.claim, shard)
	}
}

// others decides on a shard that is another's by the table, or nobody's.
func (d *decision) others(v view, shard int, holder string, comes bool) {
	switch {
	case v.held[shard]:
		d.lost = append(d.lost, shard)
	case comes && (holder == "" || v.dead(holder)):
		d.claim = append(d.claim, shard)
	}
}

// apply returns the table as it is after a decision was written.
func (d decision) apply(table []string, self string) []string {
	next := slices.Clone(table)
	for _, shard := range d.release {
		next[shard] = ""
	}
	for _, shard := range d.claim {
		next[shard] = self
	}
	return next
}
