package v1alpha1

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// GenericMap is a free-form JSON object: Helm values, template values.
//
// +kubebuilder:object:generate=false
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type GenericMap struct {
	Data map[string]any `json:"-"`
}

// MarshalJSON writes the object itself, with sorted keys; no data is an empty object.
func (m GenericMap) MarshalJSON() ([]byte, error) {
	if m.Data == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(m.Data)
}

// UnmarshalJSON reads a JSON object; numbers become float64, as Helm reads them.
func (m *GenericMap) UnmarshalJSON(data []byte) error {
	m.Data = nil
	return json.Unmarshal(data, &m.Data)
}

// DeepCopyInto copies the whole tree.
func (m *GenericMap) DeepCopyInto(out *GenericMap) {
	out.Data = nil
	if m.Data != nil {
		out.Data = runtime.DeepCopyJSON(m.Data)
	}
}

// DeepCopy returns a copy of the whole tree, or nil.
func (m *GenericMap) DeepCopy() *GenericMap {
	if m == nil {
		return nil
	}
	out := new(GenericMap)
	m.DeepCopyInto(out)
	return out
}
