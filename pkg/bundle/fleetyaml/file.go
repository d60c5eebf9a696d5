package fleetyaml

import (
	"encoding/json"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Names are the spellings of the file, in the order they are looked for.
var Names = []string{"fleet.yaml", "fleet.yml"}

// File is the content of a fleet.yaml: the specification of the bundle and what only this file has.
// What belongs to the engine (resources, contents, restrictions) is never filled in.
type File struct {
	fleet.BundleSpec `json:",inline"`

	// Name replaces the name made from the folder.
	Name string `json:"name,omitempty"`
	// Labels of the Bundle, without reserved ones.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Bundle, without reserved ones.
	Annotations map[string]string `json:"annotations,omitempty"`
	// TargetCustomizations are options for some of the clusters, in order.
	TargetCustomizations []fleet.BundleTarget `json:"targetCustomizations,omitempty"`
	// OverrideTargets take the place of the GitRepo's targets; nil when the file has none.
	OverrideTargets []fleet.ClusterTarget `json:"overrideTargets,omitempty"`
	// ImageScans look for new image tags.
	ImageScans []ImageScan `json:"imageScans,omitempty"`
}

// ImageScan is an image to scan; Name is read and not used, as upstream has it.
type ImageScan struct {
	fleet.ImageScanSpec `json:",inline"`
	Name                string `json:"name,omitempty"`
}

// Warning is something in a file that was left out or is probably not meant. Line and Column start at
// 1; 0 means the whole file.
type Warning struct {
	File    string
	Line    int
	Column  int
	Message string
}

// String returns "file:line:column: message", without the parts that are not known.
func (w Warning) String() string {
	where := w.File
	if w.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", where, w.Line, w.Column)
	}
	return where + ": " + w.Message
}

// internal are keys of the specification that only the engine fills in.
var internal = map[string]bool{
	"resources":                      true,
	"targetRestrictions":             true,
	"contentsId":                     true,
	"contentsStorage":                true,
	"helmOpOptions":                  true,
	"valuesHash":                     true,
	"overwrites":                     true,
	"allowedTargetNamespaceSelector": true,
}

func decode(tree any) (*File, error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	file := &File{}
	if err := json.Unmarshal(data, file); err != nil {
		return nil, err
	}
	return file, nil
}
