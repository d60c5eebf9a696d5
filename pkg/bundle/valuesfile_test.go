package bundle

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// The short way to values gives what Helm's way over JSON gives, or the same error.
func TestValuesAreHelms(t *testing.T) {
	for _, text := range []string{
		"", "~", "{}", "a: 1", "a: [1, 2.50, null, 1e3, 0x1f, 0o17, 017, 1_000, -0.0, 12345678901234567890, 9007199254740993, 123456789012345678901234567890]",
		"a: yes\nb: on\nc: 'yes'\nd: ~\nn: 1\n", "1: a\ntrue: b\n2.5: c\n", "~: a\n", "a: .nan", "a: .inf", "a: 2020-01-01\nb: 2020-01-01T00:00:00Z\nc: !!timestamp 2020-01-01",
		"a: !!binary gIGC", "? !!binary gIGC\n: x", "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}", "a: \"\\x01\\u2028<&>\"", "{a: b}: c", "a: b: c", "\t", "a: [", "- a", "text", "18446744073709551615: a",
		"a: !!str 1\nb: !!float 1\nc: !!int '1'\n", "a: 12:30:45\nb: 1:30\n", "a: {b: []}\nc: {}\n", "a: 1\na: 2\n",
	} {
		got, err := readTree([]byte(text))
		var want any
		wantErr := yaml.Unmarshal([]byte(text), &want)
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v, %v, want %#v, %v", text, got, err, want, wantErr)
		}
	}
}

// Whether a key is written with quotes makes no two keys of one name: which one counts would be chance.
func TestValuesOfOneName(t *testing.T) {
	for _, text := range []string{"1: a\n'1': b\n", "yes: a\n'true': b\n", "a: {2: x, '2': y}\n"} {
		if got, err := parseValues([]byte(text)); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func FuzzValues(f *testing.F) {
	for _, text := range []string{"a: [1, 2.50, null]\nyes: 1\n", "a: &x {b: 1}\nd: {<<: *x}", "a: !!binary gIGC\n2.5: c", "a: 12:30\nb: 0x1f\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readTree(data)
		var want any
		wantErr := yaml.Unmarshal(data, &want)
		switch {
		case err != nil: // which may be about keys that the usual way takes by chance
		case wantErr != nil:
			t.Errorf("got %v, want the error %v", got, wantErr)
		case !reflect.DeepEqual(got, want):
			t.Errorf("got %#v, want %#v", got, want)
		}
	})
}
