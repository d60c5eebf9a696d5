package index

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonVersionNotFound is the reason of the error when no version fits.
const ReasonVersionNotFound = "VersionNotFound"

// Choose returns the index of the version that is wanted: the one that is written exactly so, else the
// newest that fits the constraint. Without a constraint it is the newest that is no pre-release. Errors are
// of class Stalled and start with where.
func Choose(wanted string, available []string, where string) (int, error) {
	if exact := slices.Index(available, wanted); wanted != "" && exact >= 0 {
		return exact, nil
	}
	expression := wanted
	if expression == "" {
		expression = "*"
	}
	constraint, err := semver.NewConstraint(expression)
	if err != nil {
		return 0, fault.New(fault.Stalled, ReasonVersionNotFound, "%s: %q is neither one of its versions nor a valid constraint", where, wanted)
	}
	best, newest := -1, (*semver.Version)(nil)
	for i, text := range available {
		version, err := semver.NewVersion(text)
		if err == nil && constraint.Check(version) && (newest == nil || version.GreaterThan(newest)) {
			best, newest = i, version
		}
	}
	if best >= 0 {
		return best, nil
	}
	if wanted == "" {
		return 0, fault.New(fault.Stalled, ReasonVersionNotFound, "%s: there is no release; set a version to use a pre-release (there are %s)", where, some(available))
	}
	return 0, fault.New(fault.Stalled, ReasonVersionNotFound, "%s: no version fits %q; there are %s", where, wanted, some(available))
}

// some names the newest few versions.
func some(available []string) string {
	const few = 5
	var versions []*semver.Version
	for _, text := range available {
		if version, err := semver.NewVersion(text); err == nil {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int { return b.Compare(a) })
	var out []string
	for _, version := range versions[:min(few, len(versions))] {
		out = append(out, version.Original())
	}
	if len(versions) > few {
		out = append(out, "…")
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
