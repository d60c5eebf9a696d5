package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxSection bounds the part of an index that is parsed as YAML, in bytes.
const maxSection = 8 << 20

// Version is an entry of an index.
type Version struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	// Digest is the SHA-256 of the archive in hex, where the index has it.
	Digest string `json:"digest"`
}

// Versions returns the versions of one chart. Indexes have many megabytes, and only this chart's lines are
// parsed where the file is written as Helm writes it.
func Versions(data []byte, chart string) ([]Version, error) {
	if first := bytes.TrimLeft(data, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		var whole struct {
			Entries map[string]json.RawMessage `json:"entries"`
		}
		if err := json.Unmarshal(data, &whole); err != nil {
			return nil, err
		}
		var versions []Version
		if raw, ok := whole.Entries[chart]; ok {
			return versions, json.Unmarshal(raw, &versions)
		}
		return nil, nil
	}
	part := lines(data, chart)
	if part == nil {
		if len(data) > maxSection {
			return nil, nil
		}
		part = data
	}
	if len(part) > maxSection {
		return nil, fmt.Errorf("the chart's versions have more than %d MiB", maxSection>>20)
	}
	var index struct {
		Entries map[string][]Version `json:"entries"`
	}
	if err := yaml.Unmarshal(part, &index); err != nil {
		return nil, err
	}
	return index.Entries[chart], nil
}

// lines cuts "entries:" with one chart's key and value out of an index in block style; nil when the
// chart is not found that way.
func lines(data []byte, chart string) []byte {
	var out []byte
	inEntries, indent := false, -1
	for line := range bytes.Lines(data) {
		text := bytes.TrimRight(line, " \r\n")
		content := bytes.TrimLeft(text, " ")
		depth := len(text) - len(content)
		switch {
		case len(content) == 0 || content[0] == '#':
			if out != nil {
				out = append(out, line...)
			}
		case !inEntries:
			inEntries = depth == 0 && string(content) == "entries:"
		case depth == 0 && content[0] != '-':
			return out
		case indent < 0 || depth == indent && content[0] != '-':
			if out != nil {
				return out
			}
			indent = depth
			if isKey(content, chart) {
				out = append([]byte("entries:\n"), line...)
			}
		case out != nil:
			out = append(out, line...)
		}
	}
	return out
}

// isKey says that a line is the key and nothing else, quoted or not.
func isKey(line []byte, key string) bool {
	text, found := strings.CutSuffix(string(line), ":")
	return found && (text == key || text == `"`+key+`"` || text == "'"+key+"'")
}
